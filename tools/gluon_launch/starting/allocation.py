"""The hosts that a batch system has given to the job we are in, from its environment."""

import collections
import itertools
import os
import pathlib
import re
import subprocess

from gluon_launch.job.hosts import parse_host
from gluon_launch.job.statuses import UsageError


def find_hosts(environ=os.environ):
    """The hosts of the allocation that this process is part of.

    Returns
    -------
    list of Host
        A host once for each of its slots, in turns: placed round-robin, no host gets more than
        its slots before all have theirs. Empty outside of an allocation.

    Raises
    ------
    UsageError
        The batch system's own list cannot be read.
    """
    for variable, read in READERS.items():
        if environ.get(variable):
            try:
                slots = read(environ)
                hosts = {name: parse_host(name) for name in slots}
            except (OSError, ValueError) as error:
                why = getattr(error, "strerror", None) or error
                raise UsageError(f"{variable}={environ[variable]}: {why}") from None
            turns = range(max(slots.values(), default=0))
            return [hosts[name] for turn in turns for name in slots if turn < slots[name]]
    return []


def watchers():
    """The two processes above this one in a submitted job: the batch script, and what runs it.

    Once one of the two is killed, the batch system may count the job as ended. It tells us nothing.

    Returns
    -------
    tuple of int
        The parent of this process and its parent.
    """
    script = os.getppid()
    try:
        stat = pathlib.Path(f"/proc/{script}/stat").read_text()
    except OSError:  # it was killed just now
        return script, None
    return script, int(stat.rpartition(")")[2].split()[1])


def het_group(name, environ):
    """The part of a heterogeneous Slurm job that a host belongs to, None in any other job."""
    groups = enumerate(_het_groups(environ))
    return next((number for number, slots in groups if name in slots), None)


def _het_groups(environ):
    """The slots of the hosts of a heterogeneous Slurm job (salloc -N1 : -N2), for each part."""
    for number in range(int(environ.get("SLURM_HET_SIZE", 0))):
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
    lines = pathlib.Path(environ["PE_HOSTFILE"]).read_text().split("\n")
    slots = collections.Counter()
    for name, count, *_ in filter(None, map(str.split, lines)):
        slots[name] += int(count)  # a host may stand there for two queues
    return slots


def _file_of_names(variable):
    return lambda environ: collections.Counter(pathlib.Path(environ[variable]).read_text().split())


_NONE = collections.Counter()
READERS = {
    "PE_HOSTFILE": _grid_engine,
    "SLURM_HET_SIZE": lambda environ: sum(map(collections.Counter, _het_groups(environ)), _NONE),
    "SLURM_JOB_NODELIST": _slurm,
    "PBS_NODEFILE": _file_of_names("PBS_NODEFILE"),
    "LSB_DJOB_HOSTFILE": _file_of_names("LSB_DJOB_HOSTFILE"),
    "LSB_HOSTS": lambda environ: collections.Counter(environ["LSB_HOSTS"].split()),
}
