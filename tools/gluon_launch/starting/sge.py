"""Grid Engine: start supervisors with qrsh, one task a host, or submit a job with qsub."""

import os
import pathlib
import re
import shlex
import signal

from gluon_launch.job.hosts import read_hosts
from gluon_launch.job.masking import is_secret
from gluon_launch.job.statuses import UsageError
from gluon_launch.job.variables import TRAINING
from gluon_launch.remote.bootstrap import REMOTE_PYTHON
from gluon_launch.starting.batch import BatchSystem, NotAccepted, Submitted, run, submitted
from gluon_launch.starting.way import ARRAY, OUTPUT

QRSH = ["qrsh", "-inherit", "-v", "PATH"]
STATES = {
    "qw": "PENDING (`qalter -w p {id}` tells why)",
    "hqw": "PENDING (held)",
    "t": "RUNNING",
    "r": "RUNNING",
    "Rr": "RUNNING",
}

ABOUT = """\
  --launcher sge    the same with qsub, and with qrsh inside: one slot a worker in the first
    parallel environment that there is. Another: --launcher-option="-pe NAME 4".
"""


class GridEngine(BatchSystem):
    """See `BatchSystem`."""

    name = "sge"
    about = ABOUT
    programs, package = ("qsub", "qrsh"), "gridengine-client"
    title, mark, inside = "Grid Engine", "#$", "PE_HOSTFILE"
    job_id, restarts = "$JOB_ID", "$RESTARTED"
    ending = "USR2 XCPU TERM"
    refused = {  # noqa: RUF012
        r"-t\b": ARRAY,
        r"-[oe]\b": OUTPUT,
        r"-verify|-w +[vp]": "--dry-run prints the script",
        "-pty": "the job has no terminal",
        "-clear": "it takes away the launcher's own options, too",
    }
    requeue = "exit 99  # for Grid Engine this means: queue it again"
    afterwards = "echo $status > {output}.status\n"

    def reach(self, host, job, command):
        """Return the words that run a command on a host: by qrsh, but for the first, this one."""
        if host == job.hosts[0]:
            return command
        return [*QRSH, host.name, f"exec {shlex.join(command)}"]

    def supervisor(self, host, job):
        command = ["python3", "-I", "-c", REMOTE_PYTHON]
        return self.reach(host, job, command), self.inherited()

    def earlier_tries(self, environ):
        """Return 1 if Grid Engine has started the job before, else 0: it does not count further."""
        return int(environ.get("RESTARTED") == "1")

    def directives(self, job, folder):
        options = job.options
        if set(folder) & set("'\""):
            raise UsageError(f"Grid Engine takes no quotes in the name of a folder: {folder}")
        hosts = [host.name for host in read_hosts(options.hostfile)] if options.hostfile else []
        output = self.output(folder, "$JOB_ID")
        return [
            "-N launch",
            "-S /bin/bash",
            f"-pe {parallel_environment()} {options.num_workers}",
            *([f"-l hostname={'|'.join(hosts)}"] if hosts else []),
            f"-v {','.join(variables(options))}",
            f'-o "{output}.out"',
            f'-e "{output}.err"',
            "-notify",  # signals before it suspends or kills: time to save
            "-r y",
            *options.launcher_option,
        ]

    def submit(self, text, words, folder, environ):
        """Directives win over the user's files of options, but not all: a job array may be asked
        for there."""
        argv = ["qsub", "-terse", "-sync", "n", "-pty", "n"]
        found = submitted(argv, text, environ, r"(?:.*\n)*(\d+)(\.\S+)?")
        job = GridEngineJob(found[1], self.output(folder, found[1]))
        if found[2]:
            run(*job.cancel_argv)
            raise NotAccepted(f"-t in .sge_request or in a file of options: {ARRAY}")
        return job


def variables(options):
    """Return the names of the variables that go with the job.

    Raises
    ------
    UsageError
        A secret is among them: `qstat -j` shows the variables of a job to everybody.
    """
    named = {*options.env, *options.env_worker, *options.env_server}
    for name, *value in sorted(re.split("[=:]", item, maxsplit=1) for item in named):
        if is_secret(name, value[0] if value else os.environ[name]):
            raise UsageError(
                f"--env {name}: Grid Engine shows it to everybody (qstat -j): read it from a file"
            )
    wanted = {"PATH", "LD_LIBRARY_PATH", *(name for name in named if re.fullmatch(r"\w+", name))}
    wanted |= {
        n for n, value in os.environ.items() if TRAINING.fullmatch(n) and not is_secret(n, value)
    }
    return sorted(wanted & set(os.environ))


def parallel_environment():
    """Return the first parallel environment that exists; "mpi" if `qconf` cannot be asked."""
    try:
        return (run("qconf", "-spl").stdout.split() or ["mpi"])[0]
    except OSError:
        return "mpi"


class GridEngineJob(Submitted):
    """See `Submitted`."""

    def __init__(self, number, output):
        self.id = number
        self.status_file = pathlib.Path(f"{output}.status")
        self.stop_argv = ["qdel", self.id]  # a signal comes first, by -notify
        self.save_argv = ["qmod", "-sj", self.id]
        self.cancel_argv = ["qdel", "-f", self.id]

    def look(self):
        """Return state and status; the status of a job that is gone is in a file of its script.

        Grid Engine tells it only to users who may read its accounting file. A user's .sge_qstat may
        hide a job in the list, or show one that has ended.
        """
        done = run("qstat", "-u", "*")
        found = re.search(rf"^ *{self.id} +\S+ +\S+ +\S+ +(\w+) ", done.stdout, re.MULTILINE)
        if found and "E" in found[1]:  # it will never run
            reason = self.error_reason()
            run(*self.cancel_argv)
            return f"cancelled: {reason}", 1
        if done.returncode or "do not exist" not in self.details().stderr:
            state = STATES.get(found[1], found[1]) if found else "UNKNOWN"
            return state.format(id=self.id), None
        try:
            status = int(self.status_file.read_text(encoding="utf-8"))
            self.status_file.unlink()
        except (OSError, ValueError):
            return "killed", 128 + signal.SIGKILL
        return "ended", status

    def error_reason(self):
        """Return why Grid Engine could not start the job."""
        found = re.search(r"^error reason[^:]*:\s*(.*)", self.details().stdout, re.MULTILINE)
        return found[1].strip() if found else "it is in an error state"

    def details(self):
        """Ask for the details of the job: they are told on stdout while it is in the queue."""
        return run("qstat", "-j", self.id)
