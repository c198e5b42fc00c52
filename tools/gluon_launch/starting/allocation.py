"""The hosts that a batch system has given to the job we are in, from its environment."""

import collections
import itertools
import os
import pathlib
import re
import subprocess

from gluon_dist import contract

from gluon_launch.job.hosts import parse_host
from gluon_launch.job.statuses import UsageError

# Variables that change what Slurm's commands do, and that no option takes back: SLURM_LABELIO
# numbers the lines, SBATCH_WAIT waits for the job's end, SCANCEL_INTERACTIVE asks, SCANCEL_STATE
# selects. The others tell srun what a step asks for. Ours gets all of the job on its node, and they
# may be of another job: from within an allocation sbatch passes on its variables.
IN_OUR_WAY = re.compile(
    r"SLURM_LABELIO|SBATCH_WAIT|SCANCEL_\w+|SRUN_CPUS_PER_TASK"
    r"|SLURM_((MEM|NTASKS|GPUS)_PER_\w+|CPUS_PER_GPU|TRES_PER_TASK|THREADS_PER_CORE)"
    r"|SLURM_(GPUS|GRES|CONSTRAINT|EXCLUSIVE|RESV_PORTS)"
)


def without_hindrance(environ):
    """An environment for Slurm's commands, also where mpirun runs them."""
    is_ours = has_parts(environ)
    return {
        name: value
        for name, value in environ.items()
        if not IN_OUR_WAY.fullmatch(name) and (is_ours or name != "SLURM_HET_SIZE")
    }


def has_parts(environ):
    """Is our own job a heterogeneous one? Variables of such a job may be left over, too."""
    return "SLURM_HET_SIZE" in environ and (
        environ.get("SLURM_JOB_ID_HET_GROUP_0") == environ.get("SLURM_JOB_ID")
    )


def find_hosts(environ=os.environ, first=None):
    """The hosts of the allocation that this process is part of; none outside of one.

    A host comes once for each of its slots, in turns: placed round-robin, no host gets more than
    its slots before all have theirs. `first` is a variable of the batch system that is asked first:
    those of another may be left over.

    Raises
    ------
    UsageError
        The list cannot be read.
    """
    system = (first or "").partition("_")[0]
    for variable in sorted(READERS, key=lambda name: not name.startswith(system)):
        if environ.get(variable):
            try:
                slots = READERS[variable](environ)
                hosts = {name: parse_host(name) for name in slots}
            except (OSError, ValueError) as error:
                why = getattr(error, "strerror", None) or error
                raise UsageError(f"{variable}={environ[variable]}: {why}") from None
            if slots:
                turns = range(max(slots.values()))
                return [hosts[name] for turn in turns for name in slots if turn < slots[name]]
    return []


def unused(environ=os.environ):
    """A line on the hosts of an allocation that a job on this machine leaves unused, or ""."""
    try:
        hosts = [*dict.fromkeys(host.name for host in find_hosts(environ))]
    except UsageError:  # the list cannot be read: nobody has asked for it
        return ""
    if len(hosts) < 2:
        return ""
    variable = next(name for name in READERS if environ.get(name))
    names = ", ".join(hosts[:MOST_NAMED]) + ", …" * (len(hosts) > MOST_NAMED)
    return (
        f"this allocation has {len(hosts)} hosts ({names}): all processes run on this one, and the "
        f"other hosts stay unused; --launcher {USES[variable]} uses all of them"
    )


# By the variable that says how many processes another launcher has started, that launcher.
LAUNCHERS = {
    "SLURM_STEP_NUM_TASKS": "srun",
    "OMPI_COMM_WORLD_SIZE": "mpirun",
    "PMI_SIZE": "mpirun",
    "MV2_COMM_WORLD_SIZE": "mpirun",
    "JSM_NAMESPACE_SIZE": "jsrun",
    "HOROVOD_SIZE": "horovodrun",
    "WORLD_SIZE": "torchrun",
}


def check_alone(environ):
    """Refuse to be started several times at once, as other launchers start a program.

    Not meant are a shell on several nodes (`srun --pty`), which one user types in, a WORLD_SIZE
    that torchrun has not set, and a job in a job of ours.
    """
    told = dict(LAUNCHERS)
    if "SLURM_PTY_PORT" in environ:
        del told["SLURM_STEP_NUM_TASKS"]
    if "TORCHELASTIC_RUN_ID" not in environ:
        del told["WORLD_SIZE"]
    if contract.JOB in environ:
        del told["HOROVOD_SIZE"]
    for variable, program in told.items():
        count = environ.get(variable, "")
        if count.isdecimal() and int(count) > 1:
            raise UsageError(
                f"{program} has started this launcher {count} times ({variable}={count}): start it "
                "once, without that, as it starts the processes itself; or unset what is left over"
            )


def watchers():
    """The two processes above this one in a submitted job: the batch script, and what runs it.

    Once one of the two is killed, the batch system may count the job as ended. It tells us nothing.
    """
    script = os.getppid()
    try:
        stat = pathlib.Path(f"/proc/{script}/stat").read_text(encoding="utf-8")
    except OSError:  # it was killed just now
        return script, None
    return script, int(stat.rpartition(")")[2].split()[1])


def het_group(name, environ):
    """The part of a heterogeneous Slurm job that a host belongs to, None in any other job."""
    groups = enumerate(_het_groups(environ))
    return next((number for number, slots in groups if name in slots), None)


def _het_groups(environ):
    """The slots of the hosts of a heterogeneous Slurm job (salloc -N1 : -N2), for each part."""
    for number in range(int(environ["SLURM_HET_SIZE"]) if has_parts(environ) else 0):
        yield _slurm(environ, f"_HET_GROUP_{number}")


def _slurm(environ, group=""):
    """Slurm's lists are compressed: d[1-3], and 2(x3),1 tasks."""
    nodes = environ[f"SLURM_JOB_NODELIST{group}"]
    try:
        done = subprocess.run(
            ["scontrol", "show", "hostnames", nodes], capture_output=True, check=True
        )
    except FileNotFoundError:
        raise ValueError("scontrol is not installed here: apt-get install slurm-client") from None
    except subprocess.CalledProcessError as error:
        raise ValueError(error.stderr.decode("utf-8", "replace").strip()) from None
    names = done.stdout.decode().split()
    counts = []
    for count, _, times in re.findall(
        r"(\d+)(\(x(\d+)\))?", environ.get(f"SLURM_TASKS_PER_NODE{group}", "")
    ):
        counts += [int(count)] * int(times or 1)
    return dict(itertools.zip_longest(names, counts[: len(names)], fillvalue=1))


def _grid_engine(environ):
    """A line for each host: name, slots, queue, processors."""
    lines = pathlib.Path(environ["PE_HOSTFILE"]).read_text(encoding="utf-8").split("\n")
    slots = collections.Counter()
    for name, count, *_ in filter(None, map(str.split, lines)):
        slots[name] += int(count)  # a host may stand there for two queues
    return slots


def _file_of_names(variable):
    return lambda environ: collections.Counter(
        pathlib.Path(environ[variable]).read_text(encoding="utf-8").split()
    )


MOST_NAMED = 4  # hosts in a line
_NONE = collections.Counter()
READERS = {
    "PE_HOSTFILE": _grid_engine,
    "SLURM_HET_SIZE": lambda environ: sum(map(collections.Counter, _het_groups(environ)), _NONE),
    "SLURM_JOB_NODELIST": _slurm,
    "PBS_NODEFILE": _file_of_names("PBS_NODEFILE"),
    "LSB_DJOB_HOSTFILE": _file_of_names("LSB_DJOB_HOSTFILE"),
    "LSB_HOSTS": lambda environ: collections.Counter(environ["LSB_HOSTS"].split()),
}
# By the same variables the way of starting that uses these hosts.
USES = {
    "PE_HOSTFILE": "sge",
    **dict.fromkeys(("SLURM_HET_SIZE", "SLURM_JOB_NODELIST"), "slurm"),
    **dict.fromkeys(("PBS_NODEFILE", "LSB_DJOB_HOSTFILE", "LSB_HOSTS"), "ssh"),
}
