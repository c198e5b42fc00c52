"""Run the launcher for real, look at what it does, and see what it leaves."""

import contextlib
import os
import pathlib
import shutil
import subprocess
import sys
import time
import uuid

ROOT = pathlib.Path(__file__).parent.parent
PROGRAMS = ROOT / "tests" / "programs"
SUM_RANKS = str(PROGRAMS / "sum_ranks.py")
CLUSTER = ROOT / ".cluster" / "test"


class Job:
    """A launcher at work, its output in files, its processes marked by a variable.

    `program` is what runs in place of the launcher.
    """

    def __init__(self, folder, *arguments, env=None, cwd=None, program=ROOT / "tools/launch.py"):
        self.mark = f"TEST_MARK={uuid.uuid4()}"
        name, value = self.mark.split("=")
        self.out, self.err = folder / f"{value}.out", folder / f"{value}.err"
        command = [sys.executable, str(program), *map(str, arguments)]
        if "ssh" in arguments or "-H" in arguments:
            command[2:2] = ["--env", name]
        with open(self.out, "wb") as out, open(self.err, "wb") as err:
            self.popen = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                env={**os.environ, **(env or {}), name: value},
                cwd=cwd,
            )
        self.pid = self.popen.pid

    def wait(self, timeout=60):
        """The exit status."""
        try:
            return self.popen.wait(timeout)
        except subprocess.TimeoutExpired:
            self.popen.kill()
            raise AssertionError(f"still running after {timeout} s:\n{self.text()}") from None

    def text(self):
        return self.out.read_text() + self.err.read_text()

    def last_words(self):
        """What the launcher itself said."""
        lines = self.err.read_text().splitlines()
        return "\n".join(line for line in lines if "[launch]" in line)

    def wait_for(self, text, timeout=60):
        end = time.monotonic() + timeout
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

    def left(self, seconds=2):
        """What is still there, given a moment to go."""
        end = time.monotonic() + seconds
        while self.processes() and time.monotonic() < end:
            time.sleep(0.05)
        return {pid: command for pid, (_, command) in self.processes().items()}


def launch(folder, *arguments, timeout=60, **options):
    """Run a job to its end; nothing may be left of it."""
    job = Job(folder, *arguments, **options)
    job.status = job.wait(timeout)
    assert not job.left()
    return job


def shell(**acts):
    """A command for the shell, by role: `worker1="exit 3"`; `other` is for the rest."""
    other = acts.pop("other", "sleep 60")
    cases = "".join(f"{who}) {act};; " for who, act in acts.items())
    return f"case $DMLC_ROLE$LAUNCH_WORKER_ID in {cases}*) {other};; esac"


def why_no_cluster():
    """Why `tools/cluster.py` cannot work here, or None."""
    if not sys.platform.startswith("linux") or os.geteuid():
        return "needs root on Linux"
    path = os.environ["PATH"] + ":/usr/sbin:/sbin"
    missing = [name for name in ("ip", "tc", "sshd", "rsync") if not shutil.which(name, path=path)]
    return f"not installed: {', '.join(missing)}" if missing else None


def cluster(*arguments, check=True):
    """Run `tools/cluster.py` on the cluster of the tests."""
    command = [sys.executable, str(ROOT / "tools" / "cluster.py"), "--name", "test", *arguments]
    return subprocess.run(command, check=check, text=True, capture_output=True, timeout=60)


def on_hosts(hosts="hosts"):
    """The arguments that lead to the cluster."""
    return "-H", str(CLUSTER / hosts), f"--ssh-option=-F{CLUSTER}/ssh_config"
