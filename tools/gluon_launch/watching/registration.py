"""Which node got which rank, read from the scheduler's own log; of Horovod, which are there.

With PS_VERBOSE=2 ps-lite's scheduler logs every node it registers. The announced address tells
which process that is (`addresses.announced_address`), so the ranks are not assumed but seen.
"""

import re

from gluon_launch.job.addresses import announced_rank

# anywhere in the line, or a part of it: two threads of ps-lite may write at once
_VERBOSE = re.compile(
    r"\S*ps-lite\S*van\S*:\d+: |Meta: request=|control=\{ |^Barrier count for |, is_recovery=\d"
)
_ASSIGNED = re.compile(r"assign rank=(\d+) to node role=(\w+), ip=([\d.]+), port=(\d+)")
_ARRIVED = re.compile(r" => 1\. .*cmd=ADD_NODE, node=\{ role=(\w+), ip=([\d.]+),")
_COMPLETE = re.compile(r"the scheduler is connected to \d+ workers and \d+ servers")
_RENDEZVOUS = re.compile(r"rendezvous: (?:worker (\d+) of (\d+) is here|listens)")


class Registration:
    """Reads the scheduler's log. Processes are known by their names."""

    def __init__(self):
        self.arrived = set()  # heard of by the scheduler; ranks are given when all are there
        self.nodes = {}  # by name: (the rank it was given, its address in octal, its port)
        self.complete = False  # all nodes have registered: the job is running

    def take(self, line):
        """Take in a line of the scheduler; True if it is one of ps-lite's own messages."""
        met = _RENDEZVOUS.fullmatch(line)
        if met:  # what gluon_dist/setup/rendezvous.py of the program says
            self.arrived.update({f"worker-{met[1]}"} if met[1] else ())
            self.complete = len(self.arrived) == int(met[2] or -1)
            return True
        if not line:  # the end of a message that another thread has written into
            return bool(self.arrived)
        if not _VERBOSE.search(line):
            return False
        arrived = _ARRIVED.search(line)
        if arrived:
            self.arrived.add(f"{arrived[1]}-{announced_rank(arrived[2])}")
        assigned = _ASSIGNED.search(line)
        if assigned:
            node, role, address, port = assigned.groups()
            # ps-lite gives servers the even numbers from 8, workers the odd ones from 9
            rank = (int(node) - 8) // 2
            self.nodes[f"{role}-{announced_rank(address)}"] = rank, address, int(port)
        self.complete = self.complete or bool(_COMPLETE.search(line))
        return True

    def has_workers(self):
        """Return whether a worker has come: its program has made a store that connects workers."""
        return self.complete or any(name.startswith("worker-") for name in self.arrived)

    def wrong(self):
        """Return the names of processes that were given the wrong rank."""
        return [name for name, (rank, at, _) in self.nodes.items() if rank != announced_rank(at)]
