"""A world for the launcher's watch in which hosts do as they are told and nobody waits.

What is going to happen stands in a queue with its time; the clock jumps to the next event.
"""

import collections
import heapq
import itertools
import queue
import signal

from gluon_launch.remote.protocol import ORDERS

READY = {"hostname": "h", "python": "3.8", "executable": "p", "processors": 2, "ssh": None}
READY.update(machine=None, uid=0)


class ToyWorld:
    """The clock, the connections, and the queue of their events.

    Parameters
    ----------
    acts : dict
        By the name of a process, what it does in each try: a list of `(seconds, report)`. The last
        list stands for all later tries. Without one a process waits until it is stopped.
    logins : dict
        By the name of a host, what a login ends in, in each try: "ready" (or a dict of what is
        peculiar to the host), "hangs", or the line with which ssh ends.
    answers : set of str
        The questions that hosts answer.
    silent_at_s : float
        After how long no host is heard of any more.
    heeds_s, heeds_with : float, int
        How long a process takes to end after TERM, and its status.
    """

    def __init__(
        self,
        acts=None,
        logins=None,
        answers=("port", "address", "bring"),
        silent_at_s=float("inf"),
        heeds_s=0,
        heeds_with=-signal.SIGTERM,
    ):
        self.acts, self.logins = acts or {}, logins or {}
        self.answers, self.silent_at = answers, 1000 + silent_at_s
        self.heeds_s, self.heeds_with = heeds_s, heeds_with
        self.now, self.tries = 1000, 0
        self.opened = collections.Counter()  # logins, by the name of the host
        self.coming, self.number = [], itertools.count()

    def monotonic(self):
        return self.now

    time = monotonic

    def sleep(self, seconds):
        self.now += seconds

    def addresses(self, name):
        """Of no host: nobody is asked where he is."""
        return []

    def events(self):
        """A new try begins: what was to come from the hosts of the one before does not."""
        self.tries += 1
        self.coming = [entry for entry in self.coming if callable(entry[2])]
        heapq.heapify(self.coming)
        return self

    def later(self, seconds, event):
        """Let something happen: `(connection, report)`, or a function that is called."""
        heapq.heappush(self.coming, (self.now + seconds, next(self.number), event))

    def get(self, timeout):
        """The next event, as of a queue."""
        if not self.coming or self.coming[0][0] > self.now + timeout:
            self.now += timeout
            raise queue.Empty
        at, _, event = heapq.heappop(self.coming)
        self.now = max(self.now, at)
        if callable(event):
            event()
            raise queue.Empty
        connection, report = event
        if report["report"] == "exit" and not connection.forget(report["name"]):
            raise queue.Empty
        return event

    def connect(self, host, way, argv, events, env, files=()):
        self.opened[host.name] += 1
        return ToyConnection(self, host, self.of_this_try(self.logins, host.name, "ready"))

    def of_this_try(self, table, name, default):
        """What stands in a table for this try, or for the last one that it knows."""
        tries = table.get(name) or [default]
        return tries[min(self.tries, len(tries)) - 1]


class ToyConnection:
    """A `Connection`, with a supervisor behind it that obeys at once."""

    def __init__(self, world, host, login):
        self.world, self.host, self.login = world, host, login
        self.ready = self.given_up = None
        self.closed = False
        self.answers, self.running = [], set()
        if login == "ready" or isinstance(login, dict):
            self.tell("ready", **{**READY, **(login if isinstance(login, dict) else {})})
        elif login != "hangs":
            self.tell("closed", status=255)

    def tell(self, report, after=0, **fields):
        self.world.later(after, (self, dict(fields, report=report)))

    def order(self, order, name=None, grace=0, names=None, **fields):
        assert {*fields} <= {*ORDERS[order].split()}
        if order == "leave":
            self.tell("closed", status=0)
        elif order == "start":
            self.running.add(name)
            self.tell("started", name=name, pid=1)
            for seconds, report in self.world.of_this_try(self.world.acts, name, []):
                whose = {} if report["report"] == "closed" else {"name": name}  # it is the host's
                self.tell(**report, after=seconds, **whose)
        elif order == "stop":
            after, status = self.world.heeds_s, self.world.heeds_with
            if after > grace:
                after, status = grace, -signal.SIGKILL
            for name in self.running if names is None else self.running & set(names):
                self.tell("exit", after=after, name=name, status=status)
        elif order in self.world.answers:
            self.tell(order, **{order: 9})

    def forget(self, name):
        """Has this process not ended before?"""
        was_running = name in self.running
        self.running.discard(name)
        return was_running

    def kill(self):
        if not self.closed:
            self.tell("closed", status=255)

    def give_up(self, why):
        self.given_up = why
        self.kill()

    def silent_s(self):
        return self.world.now - self.world.silent_at

    def was_dropped(self):
        return str(self.login).startswith("dropped")

    def why_closed(self):
        return f"{self.host}: no connection: {self.given_up or self.login}"


def toy_yarn(folder, **does):
    """Write a program `yarn` that does as told: a line for the shell for each of its commands."""
    (folder / "hadoop-yarn-applications-distributedshell-3.jar").touch()
    does = {"classpath": f"echo '{folder}/*'", **does}
    cases = " ".join(f"{command}) {line};;" for command, line in does.items())
    (folder / "yarn").write_text(f"#!/bin/sh\ncase $1 in {cases} esac\n")
    (folder / "yarn").chmod(0o755)
