"""What all parts of a watch are given."""

import collections
from dataclasses import dataclass, field

from gluon_launch.job.job import Job
from gluon_launch.telling.output import Console
from gluon_launch.telling.record import Record
from gluon_launch.watching.world import World


@dataclass(frozen=True)
class Session:
    """One job, from its start to its end with all tries.

    Attributes
    ----------
    job : Job
        What is to be run, and where.
    console : Console
        The screen.
    record : Record
        The folder of logs.
    requests : collections.deque of int
        Signals to the launcher, in order; their handlers fill it.
    world : World
        Time, hosts and copies.
    """

    job: Job
    console: Console
    record: Record
    requests: collections.deque
    world: World = field(default_factory=World)
