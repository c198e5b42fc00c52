"""What is to run where: the processes of a job, their places and their environment."""

import argparse
import re
import secrets
import time
from dataclasses import dataclass, field
from typing import Dict, List, Optional, Tuple

from gluon_launch.job.hosts import Host
from gluon_launch.job.statuses import UsageError, counted

ROLES = ("scheduler", "server", "worker")


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
    """All that is known before anything is started."""

    command: List[str]
    hosts: List[Host]  # as given; the first one gets the scheduler
    processes: List[Process]
    source: str  # the folder in which the launcher was started
    target: Optional[str]  # where `--sync-dst-dir` copies it to on every host
    options: argparse.Namespace  # the command line as it was parsed
    way: object  # of starting: see `starting/way.py`
    env: Dict[str, Dict[str, str]]  # by role, the variables that the user wants passed
    interface: Optional[str] = None  # of the network; of several with commas, the first it has
    is_to_submit: bool = False  # a batch system takes it first, and starts the launcher again
    began: float = field(default_factory=time.monotonic)
    id: str = field(default_factory=lambda: secrets.token_hex(8))  # unlike that of any other job
    earlier_tries: int = 0  # how often a batch system has started it before
    watchers: Optional[Tuple[int, Optional[int]]] = None  # if submitted, `allocation.watchers`
    machines: Dict[Host, Host] = field(default_factory=dict)  # by a host, the first on its machine

    def count(self, role, host=None):
        """Return how many processes of a role there are (on one host)."""
        return sum(p.role == role and host in (None, p.host) for p in self.processes)

    @property
    def backend(self):
        """What the workers exchange gradients by: "ps-lite" through servers, or "horovod"."""
        return "ps-lite" if self.count("server") else "horovod"

    def machine(self, host):
        """Return the first of the hosts that are one machine, as containers may be."""
        return self.machines.get(host, host)

    def neighbours(self, host):
        """Return the workers on a host's machine."""
        workers = [p for p in self.processes if p.role == "worker"]
        return [p for p in workers if self.machine(p.host) == self.machine(host)]

    def unite(self, host, with_host):
        """Count a host as another one: they are the same machine."""
        self.hosts = [with_host if each == host else each for each in self.hosts]
        for process in self.processes:
            if process.host == host:
                process.host = with_host

    def rename(self, names):
        """Give hosts other names: `names` has the new Host by the old one."""
        self.hosts = [names[host] for host in self.hosts]
        for process in self.processes:
            process.host = names[process.host]

    @property
    def directory(self):
        """Where the command runs, on every host."""
        return self.target or self.source

    @property
    def is_submitted(self):
        """Whether it runs in an allocation that a batch system gave to the launcher's script."""
        return self.watchers is not None

    @property
    def shows_ps_lite(self):
        """Whether the user wants to see ps-lite's own messages."""
        return self.env["scheduler"].get("PS_VERBOSE", "") not in ("", "0")

    @property
    def argv(self):
        """What is run: one word is a line for the shell, several are passed on as they are.

        Variables in front of them are set by `env`, as MXNet's launcher had a shell set them.
        """
        if len(self.command) == 1:
            return ["sh", "-c", self.command[0]]
        return ["env", *self.command] if sets_variable(self.command[0]) else self.command


def sets_variable(word):
    """Return whether a word looks like NAME=VALUE."""
    return re.match(r"[A-Za-z_]\w*=", word, re.ASCII) is not None


def distribute(num_workers, num_servers, hosts, placement="round-robin"):
    """Distribute processes over hosts, of which the first also gets the scheduler.

    Round-robin is the published way: servers first, then workers, one host after the other. `fill`
    gives every host as many workers as it has slots before it turns to the next, and spreads the
    servers over the hosts that have workers.

    Raises
    ------
    UsageError
        There are fewer slots than workers.
    """
    workers = [hosts[(num_servers + i) % len(hosts)] for i in range(num_workers)]
    used = hosts
    if placement == "fill":
        slots = [host for host in hosts for _ in range(host.slots)]
        if num_workers > len(slots):
            workers, slots = counted(num_workers, "worker"), counted(len(slots), "slot")
            raise UsageError(f"{workers}, but the hosts have {slots}")
        workers = slots[:num_workers]
        used = list(dict.fromkeys(workers))
    return (
        [Process("scheduler", 0, hosts[0])]
        + [Process("server", i, used[i % len(used)]) for i in range(num_servers)]
        + [Process("worker", i, host) for i, host in enumerate(workers)]
    )
