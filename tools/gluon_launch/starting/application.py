"""An application of YARN that holds the containers of one try: Hadoop's own DistributedShell."""

import errno
import glob
import os
import pathlib
import re
import secrets
import socket
import subprocess
import tempfile
import threading
import time

from gluon_launch.job.statuses import UNREACHABLE, USAGE, counted
from gluon_launch.remote.bootstrap import REMOTE
from gluon_launch.remote.host import own_address
from gluon_launch.starting.relay import KEY

SCRIPT = "launch_container.py"
CLIENT = "org.apache.hadoop.yarn.applications.distributedshell.Client"
ANSWER_S = 20  # for the ResourceManager
END_S = 10  # for an application whose containers have ended
PATIENCE_S = 60  # for the program `yarn`
ROOM_S = 10  # before it is said that the job waits
OVER = {"FINISHED", "FAILED", "KILLED"}
# What the client says on its way; the order is that of `Application.read`.
SAYS = {
    "nodes": re.compile(r"numNodeManagers=(\d+)"),
    "memory": re.compile(r"Max mem capability of resources in this cluster (\d+)"),
    "cores": re.compile(r"Max virtual cores capability of resources in this cluster (\d+)"),
    "submitting": re.compile(r"(Submitting) application"),
    "id": re.compile(r"Submitted application (application_\d+_\d+)"),
    "state": re.compile(r"yarnAppState=(\w+)"),
    "diagnostics": re.compile(r"appDiagnostics=(.*?), appMasterHost="),
    "away": re.compile(r"Retrying connect to server: (\S+?)\."),
    "error": re.compile(r"(?:Exception|Error): (.*)|(Unrecognized option: .*)"),
}


def run_yarn(*words):
    """Run `yarn`: what it ended with, and its output. `OSError`: it cannot be run, or hangs."""
    try:
        return subprocess.run(
            ["yarn", *words],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=PATIENCE_S,
            start_new_session=True,  # Ctrl-C is for the launcher, which needs the answer
        )
    except subprocess.TimeoutExpired:
        what = " ".join(["yarn", *words])
        raise OSError(errno.ETIMEDOUT, f"no answer within {PATIENCE_S} s", what) from None


def find_jar():
    """Return the jar of DistributedShell among the classes that `yarn` uses; else `OSError`."""
    done = run_yarn("classpath")
    for entry in done.stdout.strip().split(":"):
        folder = entry[:-1] if entry.endswith("/*") else os.path.dirname(entry)
        found = glob.glob(f"{glob.escape(folder)}/hadoop-yarn-applications-distributedshell-*.jar")
        jars = [jar for jar in found if "tests" not in jar and "sources" not in jar]
        if jars:
            return jars[0]
    said = done.stderr.strip().splitlines() if done.returncode else []
    why = said[-1] if said else "it names no jar of DistributedShell"
    raise OSError(errno.ENOENT, why, "yarn classpath")


def own_addresses(interface):
    """Return the IPv4 addresses of this machine that a container may call, the likeliest first."""
    found = []
    named = interface.split(",") if interface else []
    for name in [*named, *(name for _, name in socket.if_nameindex())]:
        try:
            found.append(own_address(None, name))
        except OSError:
            pass  # it has none, or is an interface of the nodes only
    return sorted(dict.fromkeys(found), key=lambda address: address.startswith("127."))


class Application:
    """Asks for the containers, and gives them back."""

    def __init__(self, job, request, say):
        self.request, self.say = request, say
        self.known = {}  # what the client has said: see `SAYS`
        self.away_since = self.waiting_since = self.state = None
        self.has_told_state = False
        jar = find_jar()
        key = secrets.token_hex(32)
        self.listener = socket.socket()
        self.listener.bind(("", 0))
        self.listener.listen(1024)
        # What the command of a supervisor inherits:
        self.files, self.environ = (self.listener.fileno(),), {**os.environ, KEY: key}
        self.folder = tempfile.TemporaryDirectory(prefix="launch-yarn-")
        script = pathlib.Path(self.folder.name, SCRIPT)
        script.touch(mode=0o600)
        port = self.listener.getsockname()[1]
        values = own_addresses(job.interface), port, key, request.archives, request.links
        call = f"main({', '.join(map(repr, values))})\n"
        program = (REMOTE / "container.py").read_text(encoding="utf-8")
        script.write_text(f"{program}\n\n{call}", encoding="utf-8")
        self.client = subprocess.Popen(
            request.argv(jar, str(script)),
            env={**os.environ, "HADOOP_ROOT_LOGGER": "INFO,console"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        """Note what the client says."""
        for line in self.client.stdout:
            text = line.decode("utf-8", "replace").strip()
            for what, pattern in SAYS.items():
                found = pattern.search(text)
                if found:
                    self.known[what] = found[1] or found[found.lastindex]
                    self.away_since = self.away_since or time.monotonic()
            if "away" in self.known and not SAYS["away"].search(text):
                del self.known["away"]
            if "away" not in self.known:
                self.away_since = None

    def trouble(self):
        """Return why no containers will come, a line and a status; None while they may."""
        known, request = self.known, self.request
        if self.away_since and time.monotonic() - self.away_since > ANSWER_S:
            return f"YARN: the ResourceManager does not answer: {known.get('away')}", UNREACHABLE
        if known.get("nodes") == "0":
            return "YARN has no node that runs", UNREACHABLE
        if int(known.get("memory", request.memory)) < request.memory:
            return (
                f"YARN gives no container more than {known['memory']} MB, and a worker with its"
                f" servers needs {request.memory}: see --worker-memory and --server-memory",
                USAGE,
            )
        if int(known.get("cores", request.cores)) < request.cores:
            most = counted(int(known["cores"]), "core")
            return (
                f"YARN gives no container more than {most}, and a worker with its"
                f" servers needs {request.cores}: see --worker-cores and --server-cores",
                USAGE,
            )
        if self.client.poll() is not None:
            self.reader.join(2)
            why = known.get("diagnostics") or known.get("error") or f"{self.client.returncode}"
            if why == "0":  # their own doing: they end so if they cannot call
                logs = f"`yarn logs -applicationId {known.get('id')}`"
                why = f"no container reached this machine: see {logs}"
            if re.search("GSS|[Kk]erberos|Krb", why):
                why = f"Kerberos is not supported ({why})"
            if "id" not in known:
                return f"YARN does not take the job: {why}", USAGE
            return f"YARN: {known['id']} ended: {why}", UNREACHABLE
        self.tell()
        return None

    def tell(self):
        """Say which application it is, and that it waits."""
        now = time.monotonic()
        if "id" in self.known and self.waiting_since is None:
            self.waiting_since = now
            self.folder.cleanup()  # YARN has its own copy
            asked = self.request
            each = f"{asked.memory} MB and {counted(asked.cores, 'core')}"
            self.say(f"YARN: {self.known['id']}, {asked.count} containers of {each}")
        if self.known.get("state") != self.state:
            self.state, self.waiting_since, self.has_told_state = self.known["state"], now, False
        if self.waiting_since and now - self.waiting_since > ROOM_S and not self.has_told_state:
            self.has_told_state = True
            if self.state == "ACCEPTED":
                self.say(f"YARN: {self.known['id']} waits: {self.known.get('diagnostics')}")
            elif self.state == "RUNNING":
                self.say(
                    f"YARN: {self.known['id']} waits for some of its {self.request.count}"
                    " containers: is there room for all of them? (One that has ended does not come"
                    f" again: see `yarn logs -applicationId {self.known['id']}`)"
                )

    def close(self):
        """Accept no further container: those that still come end at once."""
        self.listener.close()

    def end(self, gently):
        """Leave no application; `gently`: its containers have ended, and it ends with them."""
        self.listener.close()
        try:
            if not gently and "id" not in self.known and "submitting" not in self.known:
                self.client.kill()  # nothing was submitted
            elif "id" not in self.known:
                self.wait(END_S, lambda: "id" in self.known)
            if gently:
                self.wait(END_S, lambda: False)
            self.kill_application()
            if self.client.poll() is None:
                self.client.kill()
            self.client.wait()
        finally:
            self.folder.cleanup()

    def wait(self, seconds, is_enough):
        """Wait for the client's end."""
        end = time.monotonic() + seconds
        while time.monotonic() < end and self.client.poll() is None and not is_enough():
            time.sleep(0.1)

    def kill_application(self):
        """Kill the application, unless it is known to have ended."""
        if self.client.poll() is not None:
            self.reader.join(2)
        number = self.known.get("id")
        if number is None or self.known.get("state") in OVER:
            return
        words = "application", "-kill", number
        try:
            is_killed = run_yarn(*words).returncode == 0
        except OSError:
            is_killed = False
        if not is_killed:
            self.say(f"YARN: {number} may still run: `yarn {' '.join(words)}` did not work")
