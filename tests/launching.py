"""Run the launcher or the training program for real, and see what it says, does and leaves."""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import time
import uuid

import cluster_batch

ROOT = pathlib.Path(__file__).parent.parent
PROGRAM = str(ROOT / "cifar10_dist" / "cifar10_dist.py")
TRAIN = (sys.executable, PROGRAM)  # a command for the launcher
PROGRAMS = ROOT / "tests" / "programs"
BUSY = 2  # every limit is so many times what a quiet machine would be given
SUM_RANKS = str(PROGRAMS / "sum_ranks.py")
# Each of pytest's processes has a cluster of its own.
CLUSTER = ROOT / ".cluster" / f"test-{os.environ.get('PYTEST_XDIST_WORKER', 0)}"


class Job:
    """A process at work, its output in files of `folder`, its processes marked by a variable.

    `program` is what runs in place of the launcher, without one; `inside` is the host of the
    cluster that it runs on; `status` is the exit status, None until somebody waited for it.
    """

    def __init__(
        self,
        folder,
        *arguments,
        env=None,
        cwd=ROOT,
        program=ROOT / "tools/launch.py",
        inside=None,
        before=(),
    ):
        self.mark = f"TEST_MARK={uuid.uuid4()}"
        name, value = self.mark.split("=")
        self.out, self.err = folder / f"{value}.out", folder / f"{value}.err"
        command = [sys.executable, str(program), *map(str, arguments)]
        if {"-H", "ssh", "mpi", "slurm", "sge", "yarn"} & set(arguments):
            command[2:2] = ["--env", name]
        command = [*before, *command]
        if inside:
            command = [*entering(inside, cwd), *command]
        environment = {k: v for k, v in os.environ.items() if not k.startswith("DMLC_")}
        environment["PATH"] += f":/usr/sbin:/sbin:{cluster_batch.PROGRAMS}"
        environment["PYTHONPATH"] = str(ROOT / "cifar10_dist")  # for the small programs of tests
        with open(self.out, "wb") as out, open(self.err, "wb") as err:
            self.popen = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                env={**environment, **(env or {}), name: value},
                cwd=cwd,
            )
        self.pid = self.popen.pid
        self.inside = inside
        self.status = None

    def interrupt(self, number=signal.SIGINT):
        """Ctrl-C, or another signal, to the launcher, also where it runs in a host."""
        pid = self.popen.pid
        os.kill(children(pid)[0] if self.inside else pid, number)

    def wait(self, timeout=60):
        """The exit status."""
        limit_s = BUSY * timeout
        try:
            self.status = self.popen.wait(limit_s)
        except subprocess.TimeoutExpired:
            self.popen.kill()
            raise AssertionError(f"still running after {limit_s} s:\n{self.text()}") from None
        return self.status

    def finish(self, timeout):
        """Wait for the end, and assert that nothing is left of the job."""
        try:
            self.wait(timeout)
        finally:
            left = self.left()
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        assert not left, f"left: {left}\n{self.text()}"

    @property
    def stdout(self):
        return self.out.read_text()

    @property
    def stderr(self):
        return self.err.read_text()

    def text(self):
        return self.stdout + self.stderr

    def last_words(self):
        """What the launcher itself said."""
        lines = self.stderr.splitlines()
        return "\n".join(line for line in lines if "[launch]" in line)

    def wait_for(self, text, timeout=60):
        end = time.monotonic() + BUSY * timeout
        while text not in self.text():
            assert time.monotonic() < end, f"{text!r} did not come:\n{self.text()}"
            assert self.popen.poll() is None, f"ended without {text!r}:\n{self.text()}"
            time.sleep(0.05)

    def processes(self, *containing):
        """Living processes of the job on this machine's hosts: {pid: (environment, command)}."""
        found = {}
        for folder in pathlib.Path("/proc").iterdir():
            with contextlib.suppress(OSError, ValueError):
                env = (folder / "environ").read_bytes()
                if int(folder.name) != os.getpid() and self.mark.encode() in env:
                    command = (folder / "cmdline").read_bytes().replace(b"\0", b" ")
                    if command and all(text.encode() in env + command for text in containing):
                        found[int(folder.name)] = env, command
        return found

    def role(self, name):
        """The processes of one role, such as `worker-1`."""
        return self.processes("LAUNCH_MARK_", f"={name}\0")

    def top(self, name):
        """The process of a role that has started the others: numbers of processes begin anew."""
        found = set(self.role(name))
        return min(found - {kid for pid in found for kid in children(pid)})

    def left(self, seconds=2):
        """What is still there, given a moment to go."""
        end = time.monotonic() + seconds
        while self.processes() and time.monotonic() < end:
            time.sleep(0.05)
        return {pid: command for pid, (_, command) in self.processes().items()}


def launch(folder, *arguments, timeout=240, **options):
    """Run a :class:`Job` to its end; nothing may be left of it."""
    job = Job(folder, *arguments, **options)
    job.finish(timeout)
    return job


def train(folder, *options, env=None):
    """Run the training program in one process, without the launcher, to its end."""
    return launch(folder, *options, env=env, program=PROGRAM)


def accuracies(text):
    """The test accuracies that a job printed, a list for each epoch."""
    found = {}
    for line in text.splitlines():
        if ": Test_acc " in line:
            epoch, accuracy = line.split("Epoch ")[1].split(": Test_acc ")
            found.setdefault(int(epoch), []).append(float(accuracy.split()[0]))
    return [found[epoch] for epoch in sorted(found)]


def shell(**acts):
    """A command for the shell, by role: `worker1="exit 3"`; `other` is for the rest."""
    other = acts.pop("other", "sleep 60")
    cases = "".join(f"{who}) {act};; " for who, act in acts.items())
    return f"case $DMLC_ROLE$LAUNCH_WORKER_ID in {cases}*) {other};; esac"


def why_no_cluster(*systems):
    """Why `tools/cluster.py` cannot work here, with these batch systems, or None."""
    if not sys.platform.startswith("linux") or os.geteuid():
        return "needs root on Linux"
    path = os.environ["PATH"] + ":/usr/sbin:/sbin"
    needed = ["ip", "tc", "sshd", "rsync"]
    for name in systems:
        needed += cluster_batch.system(name).NEEDED
    missing = [name for name in needed if not shutil.which(name, path=path)]
    return f"not installed: {', '.join(missing)}" if missing else None


def cluster(*arguments, check=True):
    """Run `tools/cluster.py` on the cluster of the tests."""
    command = [sys.executable, ROOT / "tools" / "cluster.py", "--name", CLUSTER.name, *arguments]
    return subprocess.run(command, check=check, text=True, capture_output=True, timeout=280)


def free_port():
    """A port that nothing listens at now: other runs of the tests have others."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def children(pid):
    """The numbers of the processes that a process has started."""
    return list(map(int, pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()))


def commands():
    """The command lines of all processes of this machine, one after the other."""
    found = b""
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):  # it has ended
            found += path.read_bytes()
    return found.replace(b"\0", b" ").decode(errors="replace")


def entering(host, folder):
    """The words before a command that runs it in a host of the cluster, without ssh."""
    holder = json.loads((CLUSTER / "state.json").read_text())["holders"][host][0]
    (pid,) = children(holder)
    user = ("env", "-C", folder, "HOME=/home/ubuntu", "USER=ubuntu", "LOGNAME=ubuntu")
    return ["nsenter", "--all", f"--target={pid}", *map(str, user)]


def on_hosts(hosts="hosts"):
    """The arguments that lead to the cluster."""
    return "-H", str(CLUSTER / hosts), f"--ssh-option=-F{CLUSTER}/ssh_config"
