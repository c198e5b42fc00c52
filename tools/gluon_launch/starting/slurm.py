"""Slurm: start supervisors with srun, one step a host, or submit a job with sbatch.

Slurm signals all processes of a job at once when it wants the job to end: the workers, which are to
save, but also the servers, without which they cannot. `shielded` keeps these alive.
"""

import os
import re
import shlex

from gluon_launch.job.hosts import read_hosts
from gluon_launch.job.statuses import UNREACHABLE
from gluon_launch.remote.bootstrap import REMOTE_PYTHON
from gluon_launch.starting import allocation
from gluon_launch.starting.batch import BatchSystem, NotAccepted, Submitted, run, submitted
from gluon_launch.starting.way import ARRAY, OUTPUT, own_words

# All are given, even the defaults: an option that is missing is taken from SLURM_* variables.
ONE_NODE = ("--nodes=1", "--overlap", "--unbuffered", "--cpu-bind=none", "--mpi=none")
ONE_NODE += ("--export=ALL", "--input=all", "--output=all")
ENDED = {"BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED"}
ENDED |= {"NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED", "TIMEOUT"}
ELSEWHERE = "log in to the other cluster, and start the job there"  # scontrol asks ours

ABOUT = """\
  --launcher slurm  inside an allocation (salloc, sbatch): srun takes the place of ssh. Outside: a
    batch script is submitted, with one node a worker and one task a node, and its output is
    followed. Your options for sbatch (inside: srun) win over those of the script:
    --launcher-option=--nodes=2 --launcher-option=--gres=gpu:4. -H names the nodes. The parts of a
    heterogeneous allocation (salloc -N1 : -N2) are one list of hosts.
"""


class Slurm(BatchSystem):
    """See `BatchSystem`."""

    name = "slurm"
    about = ABOUT
    programs, package = ("sbatch", "srun"), "slurm-client"
    title, mark, inside = "Slurm", "#SBATCH", "SLURM_JOB_ID"
    job_id, restarts = "$SLURM_JOB_ID", "${SLURM_RESTART_COUNT:-0}"
    ending = "TERM"
    requeue = "scontrol requeue $SLURM_JOB_ID"
    hints = (
        (
            "Invalid generic resource",
            UNREACHABLE,
            "is the number of GPUs that of the whole job (--gpus)? Ask for those of each host: "
            "--gpus-per-node=N",
        ),
    )
    refused = {  # noqa: RUF012
        "-a|--ar": ARRAY,
        "-[oe]|--(ou|er|op)": OUTPUT,  # Slurm takes abbreviations
        "-W$|--wait$": "the launcher itself waits for the end",
        "--te": "--dry-run prints the script, --check asks the hosts",
        "-M|--cl": ELSEWHERE,
        "--wr": "the command stands at the end",
        "-Q|--qu": "the launcher needs the number of the job",
        "-i|--in": "the launcher itself needs the input",
        "-l|--la": "every line has the name of its process in front",
    }
    # If slurmstepd, which waits for us, was killed, nobody tells Slurm of our end.
    afterwards = "[ -e /proc/$PPID ] || scancel $SLURM_JOB_ID\n"

    def reach(self, host, job, command):
        extra = [] if job.is_submitted else own_words(job.options)  # else they were for sbatch
        group = allocation.het_group(host.name, os.environ)
        where = [f"--nodelist={host.name}", *([] if group is None else [f"--het-group={group}"])]
        # Last, and wins: two tasks would be two supervisors, which start each process twice.
        return ["srun", *ONE_NODE, *where, *extra, "--ntasks=1", *command]

    def supervisor(self, host, job):
        """Return srun's command. It passes on its environment: `python` is the same as here."""
        command = ["python3", "-I", "-c", REMOTE_PYTHON]
        return self.reach(host, job, command), allocation.without_hindrance(self.inherited())

    def address(self, host, ready):
        """Return the address under which Slurm knows the host."""
        try:
            done = run("scontrol", "--oneliner", "show", "node", host.name)
        except OSError:
            return host.name
        found = re.search(r"\bNodeAddr=(\S+)", done.stdout)
        return found[1] if found else host.name

    def shielded(self, role, argv):
        """Return a command that ignores Slurm's request to end: the launcher ends servers.

        A worker's shell waits for its worker.
        """
        if role != "worker":
            return ["sh", "-c", 'trap "" TERM USR1 USR2; exec "$@"', "sh", *argv]
        if argv[:2] == ["sh", "-c"]:
            return ["sh", "-c", f"trap : TERM USR1 USR2\n{argv[2]}"]
        return argv

    def earlier_tries(self, environ):
        """Return how often Slurm has requeued the job."""
        return int(environ.get("SLURM_RESTART_COUNT", 0))

    def directives(self, job, folder):
        options = job.options
        hosts = [host.name for host in read_hosts(options.hostfile)] if options.hostfile else []
        pattern = self.output(folder.replace("%", "%%"), "%j")
        return [
            *([] if "SBATCH_JOB_NAME" in os.environ else ["--job-name=launch"]),
            f"--nodes={len(hosts) or options.num_workers}",
            *([f"--nodelist={','.join(hosts)}"] if hosts else []),
            "--ntasks-per-node=1",
            "--export=ALL",
            f"--output={pattern}.out",
            f"--error={pattern}.err",
            "--open-mode=append",
            "--requeue",
            f"--signal=B:USR1@{round(options.grace) + 60}",
            *own_words(options),
        ]

    def directive(self, option):
        """Return an option as a line of the script, quoted: sbatch reads it like a shell."""
        return super().directive(shlex.quote(option))

    def submit(self, text, words, folder, environ):
        environ = allocation.without_hindrance(environ)
        for name, why in (("SBATCH_ARRAY_INX", ARRAY), ("SBATCH_CLUSTERS", ELSEWHERE)):
            if name in environ:
                raise NotAccepted(f"{name} is set: {why}")
        try:
            found = submitted(["sbatch", "--parsable", *words], text, environ, r"(\d+)(;.*)?")
        except NotAccepted as refused:
            if "Invalid node name" in str(refused):
                refused.status = UNREACHABLE  # as for any other host that cannot be reached
            raise
        return SlurmJob(found[1], environ)


class SlurmJob(Submitted):
    """See `Submitted`."""

    def __init__(self, number, environ):
        self.id, self.environ = number, environ
        self.stop_argv = ["scancel", "--batch", "--signal=TERM", self.id]
        self.save_argv = ["scancel", "--signal=USR1", self.id]
        self.cancel_argv = ["scancel", self.id]

    def look(self):
        done = run("scontrol", "--oneliner", "show", "job", self.id)
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
