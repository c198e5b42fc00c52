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

# Variables that change what Slurm's commands do, and that no option overrides: SLURM_LABELIO
# numbers the lines, SBATCH_WAIT waits for the job's end, SCANCEL_INTERACTIVE asks, SCANCEL_STATE
# selects. The rest limits what a step gets. Our step gets all of the job on its node, and these
# variables may be of another job: from within an allocation sbatch passes on its environment.
IN_OUR_WAY = re.compile(
    r"SLURM_LABELIO|SBATCH_WAIT|SCANCEL_\w+|SRUN_CPUS_PER_TASK"
    r"|SLURM_((MEM|NTASKS|GPUS)_PER_\w+|CPUS_PER_GPU|TRES_PER_TASK|THREADS_PER_CORE)"
    r"|SLURM_(GPUS|GRES|CONSTRAINT|EXCLUSIVE|RESV_PORTS)"
)


def without_hindrance(environ):
    """Return an environment for Slurm's commands, also where mpirun runs them."""
    is_ours = has_parts(environ)
    return {
        name: value
        for name, value in environ.items()
        if not IN_OUR_WAY.fullmatch(name) and (is_ours or name != "SLURM_HET_SIZE")
    }


def has_parts(environ):
    """Return whether our job is heterogeneous; variables of another such job may be set, too."""
    return "SLURM_HET_SIZE" in environ and (
        environ.get("SLURM_JOB_ID_HET_GROUP_0") == environ.get("SLURM_JOB_ID")
    )


def find_hosts(environ=os.environ, first=None):
    """Return the hosts of the allocation that this process is part of; none outside of one.

    A host comes once for each of its slots, in turns: placed round-robin, no host gets more than
    its slots before all have theirs. `first` is a variable of the batch system to try first, as
    variables of another one may be set.

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
    """Return a line on the hosts of an allocation that a job here leaves unused, or ""."""
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
    counts = dict(LAUNCHERS)
    if "SLURM_PTY_PORT" in environ:
        del counts["SLURM_STEP_NUM_TASKS"]
        if environ.get("PMI_SIZE") == environ.get("SLURM_STEP_NUM_TASKS"):  # by MpiDefault=pmi2
            del counts["PMI_SIZE"]
    if "TORCHELASTIC_RUN_ID" not in environ:
        del counts["WORLD_SIZE"]
    if contract.JOB in environ:
        del counts["HOROVOD_SIZE"]
    for variable, program in counts.items():
        count = environ.get(variable, "")
        if count.isdecimal() and int(count) > 1:
            raise UsageError(
                f"{program} has started this launcher {count} times ({variable}={count}): start it "
                "once, without that, as it starts the processes itself; or unset what is left over"
            )


def watchers():
    """Return the two processes above this one in a submitted job: the batch script and its parent.

    Once one of the two is killed, the batch system may count the job as ended, without a signal.
    """
    script = os.getppid()
    try:
        stat = pathlib.Path(f"/proc/{script}/stat").read_text(encoding="utf-8")
    except OSError:  # it was killed just now
        return script, None
    return script, int(stat.rpartition(")")[2].split()[1])


def het_group(name, environ):
    """Return the part of a heterogeneous Slurm job that a host belongs to; else None."""
    groups = enumerate(_het_groups(environ))
    return next((number for number, slots in groups if name in slots), None)


def _het_groups(environ):
    """Yield the slots of the hosts of each part of a heterogeneous job (salloc -N1 : -N2)."""
    for number in range(int(environ["SLURM_HET_SIZE"]) if has_parts(environ) else 0):
        yield _slurm(environ, f"_HET_GROUP_{number}")


def _slurm(environ, group=""):
    """Return the slots of each host from Slurm's compressed lists: d[1-3], and 2(x3),1 tasks."""
    nodes = environ[f"SLURM_JOB_NODELIST{group}"]
    try:
        done = subprocess.run(
            ["scontrol", "show", "hostnames", nodes], capture_output=True, check=True
        )
    except FileNotFoundError:
        raise ValueError("scontrol is not installed here: apt-get install slurm-client") from None
    except subprocess.CalledProcessError as error:
        raise ValueError(" ".join(error.stderr.decode("utf-8", "replace").split())) from None
    names = done.stdout.decode().split()
    counts = []
    for count, _, times in re.findall(
        r"(\d+)(\(x(\d+)\))?", environ.get(f"SLURM_TASKS_PER_NODE{group}", "")
    ):
        counts += [int(count)] * int(times or 1)
    return dict(itertools.zip_longest(names, counts[: len(names)], fillvalue=1))


def _grid_engine(environ):
    """Return the slots of each host from a file of lines: name, slots, queue, processors."""
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
