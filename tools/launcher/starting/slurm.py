"""Start the supervisors of an allocation's hosts with srun, one step a host.

Slurm signals all processes of a job at once when it wants the job to end: the workers, which are to
save, but also the servers, without which they cannot. `shielded` keeps these alive.
"""

import re
import shlex
import subprocess

from launcher.job.hosts import read_hosts
from launcher.starting import local
from launcher.starting.submit import submitted

ONE_NODE = ("--nodes=1", "--ntasks=1", "--overlap", "--unbuffered", "--cpu-bind=none", "--mpi=none")


def argv(host, options, command):
    """The command that runs another one on a host of the allocation, with its standard input."""
    extra = [] if options.is_submitted else options.launcher_option  # else they were for sbatch
    return ["srun", *ONE_NODE, f"--nodelist={host.name}", *extra, *command]


def supervisor(host, options):
    """The command that starts the supervisor of a host, and its environment.

    As srun passes on the environment that it has, `python` means the same as here.
    """
    (_, *rest), env = local.supervisor()
    return argv(host, options, ["python3", *rest]), env


def address(host, _):
    """Where the other hosts find this one, as Slurm knows it."""
    try:
        done = subprocess.run(
            ["scontrol", "--oneliner", "show", "node", host.name],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
    except OSError:
        return host.name
    found = re.search(rb"\bNodeAddr=(\S+)", done.stdout)
    return found[1].decode() if found else host.name


def shielded(role, argv):
    """A command that Slurm's request to end the job does not end at once.

    Servers and the scheduler ignore it: the launcher ends them. A shell that a worker was started
    by waits for it.
    """
    if role != "worker":
        return ["sh", "-c", 'trap "" TERM USR1 USR2; exec "$@"', "sh", *argv]
    if argv[:2] == ["sh", "-c"]:
        return ["sh", "-c", f"trap : TERM USR1 USR2\n{argv[2]}"]
    return argv


# Outside of an allocation

NAME, MARK = "Slurm", "#SBATCH"
MISSING = "sbatch is not installed here: apt-get install slurm-client"
JOB_ID = "$SLURM_JOB_ID"
ENDED = [
    "BOOT_FAIL",
    "CANCELLED",
    "COMPLETED",
    "DEADLINE",
    "FAILED",
    "NODE_FAIL",
    "OUT_OF_MEMORY",
    "PREEMPTED",
    "TIMEOUT",
]
ENDING = "TERM"  # the signals by which it ends a job for good
# If slurmstepd, which waits for us, was killed, nobody tells Slurm of our end.
AFTERWARDS = "[ -e /proc/$PPID ] || scancel $SLURM_JOB_ID\n"
RESTARTS = "${SLURM_RESTART_COUNT:-0}"
REQUEUE = "scontrol requeue $SLURM_JOB_ID"


def directives(options, folder):
    """What sbatch is told; the user's own options come last, and win."""
    hosts = [host.name for host in read_hosts(options.hostfile)] if options.hostfile else []
    pattern = folder.replace("%", "%%") + "/launch-%j"
    return [
        "--job-name=launch",
        f"--nodes={len(hosts) or options.num_workers}",
        *([f"--nodelist={','.join(hosts)}"] if hosts else []),
        "--ntasks-per-node=1",
        "--export=ALL",
        f'--output="{pattern}.out"',
        f'--error="{pattern}.err"',
        "--open-mode=append",
        "--requeue",
        f"--signal=B:USR1@{round(options.grace) + 60}",
        *map(quoted, options.launcher_option),
    ]


def quoted(option):
    """An option as a directive: sbatch reads it like a shell."""
    name, equals, value = option.partition("=")
    return f"{name}{equals}{shlex.quote(value)}" if value else option


class Submitted:
    """A job in Slurm's hands."""

    def __init__(self, text, _, environ):
        said = submitted(["sbatch", "--parsable"], text, environ)
        self.id = said.split(";")[0].strip()  # a cluster's name may follow
        # to save and end, to save, to end at once
        self.stop_argv = ["scancel", "--batch", "--signal=TERM", self.id]
        self.save_argv = ["scancel", "--signal=USR1", self.id]
        self.cancel_argv = ["scancel", self.id]

    def look(self):
        """What the job is doing, and its exit status, None before its end."""
        done = subprocess.run(
            ["scontrol", "--oneliner", "show", "job", self.id], capture_output=True, text=True
        )
        fields = dict(re.findall(r"(\w+)=(\S*)", done.stdout))
        if "Invalid job id" in done.stderr:  # it ended so long ago that Slurm has forgotten it
            return "not known any more", 1
        state = fields.get("JobState", "UNKNOWN")
        if state == "PENDING":
            return f"PENDING ({fields['Reason']})", None
        if state not in ENDED:
            return state, None
        code, number = map(int, fields["ExitCode"].split(":"))
        status = 128 + number if number else code
        return state, status or int(state != "COMPLETED")


def earlier_tries(environ):
    """How often Slurm has requeued the job."""
    return int(environ.get("SLURM_RESTART_COUNT", 0))
