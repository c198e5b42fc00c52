"""Put up the hosts of `cluster.py`, and take them down.

One process holds the namespaces of the switch, and one those of each host. When it ends, the kernel
removes its addresses, cables, mounts and processes. If `up` is interrupted, these processes end.
"""

import contextlib
import fcntl
import json
import os
import pathlib
import platform
import re
import shutil
import signal
import subprocess
import sys
import time

import cluster_batch
from cluster_host import write_files

ROOT = pathlib.Path(__file__).resolve().parent.parent
HOST_NAME = re.compile(r"d\d+")
# A login ends by itself when we and the host are gone.
ENDS = ("-oConnectTimeout=10", "-oServerAliveInterval=3", "-oServerAliveCountMax=3")
CONGESTION_CONTROLS = pathlib.Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
NEEDED = {  # program: Debian package
    "ip": "iproute2",
    "tc": "iproute2",
    "sshd": "openssh-server",
    "ssh": "openssh-client",
    "ssh-keygen": "openssh-client",
    "rsync": "rsync",
    "unshare": "util-linux",
    "nsenter": "util-linux",
}
SSH_CONFIG = """\
Host {name}
    HostName {address}
    User ubuntu
    IdentityFile "{cluster}/key"
    IdentitiesOnly yes
    IdentityAgent none
    UserKnownHostsFile "{cluster}/known_hosts"
    GlobalKnownHostsFile /dev/null
"""


class Problem(Exception):
    """A problem for the user: one line, status 2."""


def run(*command, inside=None, check=True):
    """Return a command's output; ``inside`` is a process whose network namespace it runs in."""
    if inside:
        command = ("nsenter", f"--net=/proc/{inside}/ns/net", *command)
    done = subprocess.run(list(map(str, command)), encoding="utf-8", capture_output=True)
    if check and done.returncode:
        raise Problem(f"{' '.join(map(str, command))}: {done.stderr.strip() or done.returncode}")
    return done.stdout


def require(systems=()):
    """Raise a :class:`Problem` that names all that is missing."""
    if not sys.platform.startswith("linux"):
        raise Problem(f"needs Linux's network namespaces; this is {platform.system()}")
    os.environ["PATH"] += os.pathsep + "/usr/sbin:/sbin"
    needed = [NEEDED, *(cluster_batch.system(each).NEEDED for each in systems)]
    programs = [pair for each in needed for pair in each.items()]
    missing = sorted({package for name, package in programs if not shutil.which(name)})
    if missing:
        raise Problem(f"not installed: {', '.join(missing)} (apt-get install {' '.join(missing)})")
    if os.geteuid():
        raise Problem("needs root to make network namespaces: put sudo in front")


def born(pid):
    """Return when a process started, in ticks since boot; None if it is gone.

    With its number this identifies it.
    """
    try:
        stat = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except OSError:
        return None
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else int(fields[19])


class Cluster:
    """One cluster, described by the files in its folder."""

    def __init__(self, name):
        self.folder = ROOT / ".cluster" / name  # the unnamed one is .cluster itself
        self.has_wired = False  # this very process has
        self.load()

    def load(self):
        self.state = {"holders": {}, "addresses": {}}
        with contextlib.suppress(OSError, ValueError):
            self.state = json.loads((self.folder / "state.json").read_text(encoding="utf-8"))

    @contextlib.contextmanager
    def locked(self):
        """Let other calls of `up` and `down` wait."""
        path = self.folder / "lock"
        with contextlib.ExitStack() as stack:
            while True:
                if self.folder.is_file():
                    raise Problem(
                        f"{self.folder} is a file, where the cluster's folder goes: rename it"
                    )
                # whoever held it has removed it, even while mkdir looked at it
                with contextlib.suppress(FileNotFoundError, FileExistsError):
                    self.folder.mkdir(parents=True, exist_ok=True)
                    file = stack.enter_context(open(path, "w", encoding="utf-8"))
                    fcntl.flock(file, fcntl.LOCK_EX)
                    if os.path.samestat(os.fstat(file.fileno()), path.stat()):
                        break
            self.load()
            try:
                yield
            finally:
                if not self.state["holders"]:
                    with contextlib.suppress(OSError):  # not empty: other clusters, or yours
                        path.unlink()
                        self.folder.rmdir()
                        (ROOT / ".cluster").rmdir()

    def living(self):
        """Return the names of the parts that are up."""
        holders = self.state["holders"]
        return [name for name, (pid, start) in holders.items() if start and born(pid) == start]

    def pid(self, name):
        """Return the number of the process that holds a part's namespaces."""
        if name not in self.living():
            names = ", ".join(self.state["addresses"]) or "none"
            raise Problem(f"no host {name!r} is up (there are: {names})")
        return self.state["holders"][name][0]

    def hold(self, name, *command):
        """Start a process that holds namespaces; until it reads `keep`, it ends when we end."""
        flags = ["--net"] if name == "switch" else ["--net", "--mount", "--uts", "--ipc", "--pid"]
        flags += [] if name == "switch" else ["--fork", "--kill-child=KILL", "--mount-proc"]
        with open(self.folder / f"{name}.log", "w", encoding="utf-8") as log:
            process = subprocess.Popen(
                ["unshare", *flags, *map(str, command)],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.state["holders"][name] = process.pid, born(process.pid)
        network = f"/proc/{process.pid}/ns/net"
        while process.poll() is None:
            with contextlib.suppress(FileNotFoundError):  # it has just ended
                if os.readlink(network) != os.readlink("/proc/self/ns/net"):
                    return process
            time.sleep(0.005)
        log = (self.folder / f"{name}.log").read_text(encoding="utf-8").strip()
        raise Problem(f"unshare: {log or process.returncode}")

    def up(self, count, rate, systems):
        """Start everything; after an error, nothing is left."""
        names = [f"d{i + 1}" for i in range(count)]
        asked = {"rate": rate, "with": systems}
        is_same = asked.items() <= self.state.items()
        if is_same and sorted(self.living()) == sorted([*names, "switch"]):
            return
        self.down()
        self.folder.mkdir(parents=True, exist_ok=True)
        self.folder.chmod(0o700)
        holders = []
        try:
            run(
                "ssh-keygen", "-qt", "ed25519", "-N", "", "-C", "cluster", "-f", self.folder / "key"
            )
            keeper = "read -r wired && read -r keep && exec sleep infinity < /dev/null"
            holders.append(self.hold("switch", "sh", "-c", keeper))
            subnet = self.wire_switch(holders[0].pid)
            addresses = {name: f"{subnet}.{9 + i}" for i, name in enumerate(names)}
            self.state.update(asked, addresses=addresses)
            for name, address in addresses.items():
                write_files(self.folder / name, name, addresses)
                program = pathlib.Path(__file__).with_name("cluster_host.py")
                folder = self.folder / name
                holder = self.hold(name, sys.executable, program, folder, name, *systems)
                holders.append(holder)
                self.wire(name, address, rate)
            self.write_lists()
            for each in systems:
                cluster_batch.system(each).write_files(self.folder / "d1", addresses)
            for holder in holders:
                holder.stdin.write(b"wired\n")
                holder.stdin.flush()
            for name in names:
                self.wait_for(name)
            for each in systems:
                reason = cluster_batch.why_not(each, self)
                if reason:
                    raise Problem(f"{each} did not start: {reason}")
            (self.folder / "state.json").write_text(json.dumps(self.state), encoding="utf-8")
            self.hand_over()
            for holder in holders:
                holder.stdin.write(b"keep\n")
                holder.stdin.close()
        except BaseException:
            for holder in holders:
                holder.kill()
            self.down()
            raise

    def wire_uplink(self, pid):
        """Connect the bridge to this machine; return the first free network from 10.77.0 on."""
        used = run("ip", "-4", "route", "show", "table", "all") + run("ip", "-4", "addr")
        for third in range(255):
            peer = ("type", "veth", "peer", "name", "uplink", "netns", pid)
            if f"10.77.{third}." in used:
                continue
            try:
                run("ip", "link", "add", f"mxc{third}", *peer)
            except Problem as problem:
                if "File exists" not in str(problem):  # another cluster was faster
                    raise
            else:
                self.state["link"], self.has_wired = f"mxc{third}", True
                return f"10.77.{third}"
        raise Problem("no free network between 10.77.0.0/24 and 10.77.254.0/24")

    def wire_switch(self, pid):
        """Create a bridge, with one cable to this machine; return its network."""
        subnet = self.wire_uplink(pid)
        link = self.state["link"]
        run("ip", "addr", "add", f"{subnet}.1/24", "dev", link)
        run("ip", "link", "set", link, "up")
        run("ip", "link", "add", "bridge", "type", "bridge", inside=pid)
        run("ip", "link", "set", "bridge", "up", inside=pid)
        run("ip", "link", "set", "uplink", "master", "bridge", "up", inside=pid)
        return subnet

    def wire(self, name, address, rate):
        """Connect the bridge and a host by a cable, with the rate set at both ends."""
        switch, host = (self.state["holders"][part][0] for part in ("switch", name))
        peer = ("type", "veth", "peer", "name", "eth0", "netns", host)
        run("ip", "link", "add", name, *peer, inside=switch)
        run("ip", "link", "set", name, "master", "bridge", "up", inside=switch)
        run("ip", "addr", "add", f"{address}/24", "dev", "eth0", inside=host)
        run("ip", "link", "set", "eth0", "up", inside=host)
        run("ip", "link", "set", "lo", "up", inside=host)
        # As nearly every Linux host has it. With BBR, which a machine may have instead, cables that
        # two connections share were seen idle for tenths of a second.
        network = f"{address.rpartition('.')[0]}.0/24"
        route = ("ip", "route", "change", network, "dev", "eth0", "src", address)
        if "cubic" in CONGESTION_CONTROLS.read_text(encoding="utf-8").split():
            run(*route, "congctl", "cubic", inside=host)
        for device, pid in ((name, switch), ("eth0", host)) if rate else ():
            shape = ("root", "tbf", "rate", rate, "burst", "256kb", "latency", "50ms")
            run("tc", "qdisc", "add", "dev", device, *shape, inside=pid)

    def write_lists(self):
        """Write the files for ssh and the launcher."""
        config, known = "", ""
        for name, address in self.state["addresses"].items():
            config += SSH_CONFIG.format(name=name, address=address, cluster=self.folder)
            key = (self.folder / name / "host_key.pub").read_text(encoding="utf-8")
            known += f"{address} {key}"
        (self.folder / "ssh_config").write_text(config, encoding="utf-8")
        (self.folder / "known_hosts").write_text(known, encoding="utf-8")
        names = "".join(f"{name}\n" for name in self.state["addresses"])
        (self.folder / "hosts").write_text(names, encoding="utf-8")

    def hand_over(self):
        """Let only the user who called sudo log in to the hosts."""
        if "SUDO_UID" in os.environ:
            ids = int(os.environ["SUDO_UID"]), int(os.environ["SUDO_GID"])
            for path in [self.folder, *self.folder.iterdir()]:
                if path == self.folder or path.is_file():
                    os.chown(path, *ids)

    def ask(self, name, command):
        """Return what a command on a host prints; nothing if the host cannot be reached."""
        ssh = ("ssh", "-F", self.folder / "ssh_config", "-oBatchMode=yes", *ENDS, name)
        return run(*ssh, command, check=False)

    def wait_for(self, name):
        """Wait until a host accepts logins."""
        for _ in range(50):
            if self.ask(name, "hostname").strip() == name:
                return
            time.sleep(0.1)
        log = (self.folder / f"{name}.log").read_text(encoding="utf-8").strip().splitlines()
        raise Problem(f"{name} did not start: {log[-1] if log else 'it said nothing'}")

    def down(self):
        """Kill the holders: the kernel removes their namespaces and all processes in them."""
        # Else the link went with the switch, and may be another cluster's by now.
        is_wired = self.has_wired or ("link" in self.state and "switch" in self.living())
        firsts = {}  # process 1 of each host, which ends after all others there
        for name in self.living():
            holder = self.state["holders"][name][0]
            children = pathlib.Path(f"/proc/{holder}/task/{holder}/children")
            with contextlib.suppress(OSError):
                pids = map(int, children.read_text(encoding="utf-8").split())
                firsts.update((pid, born(pid)) for pid in pids)
            os.kill(holder, signal.SIGKILL)
        while self.living() or any(start and born(pid) == start for pid, start in firsts.items()):
            time.sleep(0.02)
        if is_wired:
            self.has_wired = False
            run("ip", "link", "del", self.state["link"], check=False)
        for path in self.folder.iterdir() if self.folder.exists() else ():
            if path.is_dir() and HOST_NAME.fullmatch(path.name):  # else another cluster's
                shutil.rmtree(path)
            elif path.is_file() and path.name != "lock":
                path.unlink()
        self.load()
