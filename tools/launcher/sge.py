"""Start the supervisors of a Grid Engine job's hosts with qrsh, one task a host."""

import subprocess

from launcher import local
from launcher.connection import REMOTE_PYTHON
from launcher.hosts import read_hosts


def argv(host, options, command):
    """The command that runs another one on a host of the job, with its standard input.

    The first host is the one we are on.
    """
    return command if host == options.hosts[0] else ["qrsh", "-inherit", host.name, *command]


def supervisor(host, options):
    """The command that starts the supervisor of a host, and its environment."""
    return argv(host, options, ["python3", "-I", "-c", REMOTE_PYTHON]), local.supervisor()[1]


def address(host, _):
    """Where the other hosts find this one."""
    return host.name


# Outside of an allocation

NAME, MARK = "Grid Engine", "#$"
MISSING = "qsub is not installed here: apt-get install gridengine-client"
JOB_ID = "$JOB_ID"
TRAPS = """\
trap '' USR1
trap 'kill -TERM $launcher' USR2  # Grid Engine is going to kill the job
"""
AFTERWARDS = ""


def directives(options, folder):
    """What qsub is told; the user's own options come last, and win."""
    hosts = [host.name for host in read_hosts(options.hostfile)] if options.hostfile else []
    return [
        "-N launch",
        "-S /bin/bash",
        f"-pe {parallel_environment()} {options.num_workers}",
        *([f"-l hostname={'|'.join(hosts)}"] if hosts else []),
        f"-o {folder}/launch-$JOB_ID.out",
        f"-e {folder}/launch-$JOB_ID.err",
        "-notify",
        "-r y",
        *options.launcher_option,
    ]


def parallel_environment():
    """The first one that there is; "mpi" where nobody can be asked."""
    try:
        done = subprocess.run(["qconf", "-spl"], stdin=subprocess.DEVNULL, capture_output=True)
    except OSError:
        return "mpi"
    return (done.stdout.decode().split() or ["mpi"])[0]
