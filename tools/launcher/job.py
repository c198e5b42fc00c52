"""What is to run where: the processes of a job, their places and their environment."""

from dataclasses import dataclass, field
from typing import List

from launcher.hosts import Host


@dataclass
class Process:
    """One process of the job.

    `rank` is the one MXNet gives it (`announced_address` sees to that).
    """

    role: str
    rank: int
    host: Host

    @property
    def name(self):
        """Unique in the job: `scheduler`, `server-0`, `worker-1`."""
        return self.role if self.role == "scheduler" else f"{self.role}-{self.rank}"

    def __str__(self):
        return self.name.replace("-", " ")


@dataclass
class Job:
    """All there is to know before anything is started."""

    command: List[str]
    hosts: List[Host]
    processes: List[Process]
    directory: str  # where the command runs, on every host
    options: object  # of the command line
    env: dict = field(default_factory=dict)  # by role: what the user wants passed

    def count(self, role, host=None):
        """How many processes of a role there are (on one host)."""
        return sum(p.role == role and host in (None, p.host) for p in self.processes)

    @property
    def argv(self):
        """One word is a line for the shell, several are a program and its arguments."""
        return ["sh", "-c", self.command[0]] if len(self.command) == 1 else self.command


def place(num_workers, num_servers, hosts, placement="round-robin"):
    """Distribute processes over hosts.

    Parameters
    ----------
    hosts : list of Host
        The first one also gets the scheduler.
    placement : {"round-robin", "fill"}
        Round-robin is the published way: servers first, then workers, one host after the other.
        `fill` gives every host as many workers as it has slots before it turns to the next, and
        spreads the servers over the hosts that have workers.

    Returns
    -------
    list of Process
    """
    workers = [hosts[(num_servers + i) % len(hosts)] for i in range(num_workers)]
    used = hosts
    if placement == "fill":
        slots = [host for host in hosts for _ in range(host.slots)]
        workers = [slots[i % len(slots)] for i in range(num_workers)]
        used = list(dict.fromkeys(workers))
    return (
        [Process("scheduler", 0, hosts[0])]
        + [Process("server", i, used[i % len(used)]) for i in range(num_servers)]
        + [Process("worker", i, host) for i, host in enumerate(workers)]
    )


def announced_address(address, rank):
    """The address in octal, with one leading zero more for each rank.

    ps-lite numbers the nodes by the address they announce, compared as a string, highest first. So
    `0177.0.0.1`, `00177.0.0.1`, `000177.0.0.1` become ranks 0, 1 and 2, wherever they are, and all
    of them mean 127.0.0.1 to the system.
    """
    octal = ".".join(f"0{int(part):o}" for part in address.split("."))
    return "0" * rank + octal


def announced_rank(address):
    """The reverse of `announced_address`."""
    return len(address) - len(address.lstrip("0")) - 1


def environment(job, process, root, port, address, processors, attempt):
    """What a process is told by environment variables: ps-lite's own, and a few of ours.

    Parameters
    ----------
    root, port : str, int
        Where the scheduler listens.
    address : str
        IPv4 address of the process's host, as the others reach it.
    processors : int
        How many that host has.
    attempt : int
        Which try this is, from 1.
    """
    here = job.count("worker", process.host)
    env = {"OMP_NUM_THREADS": str(max(1, processors // max(1, here)))}
    env.update(job.env.get(process.role, {}))
    env.update(
        DMLC_ROLE=process.role,
        DMLC_PS_ROOT_URI=root,
        DMLC_PS_ROOT_PORT=str(port),
        DMLC_NUM_WORKER=str(job.count("worker")),
        DMLC_NUM_SERVER=str(job.count("server")),
        DMLC_NODE_HOST=announced_address(address, process.rank),
        DMLC_JOB_CLUSTER=job.options.launcher,
        LAUNCH_ATTEMPT=str(attempt),
        LAUNCH_LOCAL_WORKERS=str(here),
    )
    if process.role == "scheduler":
        env.setdefault("PS_VERBOSE", "1")  # tells which node got which rank: see registration.py
        env["DMLC_NODE_HOST"] = address
    else:
        before = job.count("worker") if process.role == "server" else 0
        env["DMLC_TASK_ID"] = str(before + process.rank)
    if process.role == "worker":
        env["LAUNCH_WORKER_ID"] = str(process.rank)
    env.setdefault("PYTHONFAULTHANDLER", "1")  # so that a stack can be had of one that hangs
    env.setdefault("PYTHONUNBUFFERED", "1")  # so that lines come when they are printed
    return env
