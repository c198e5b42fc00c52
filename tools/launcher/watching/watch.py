"""Handle what happens while a job runs, and decide what it means for the job."""

import collections
import queue
import signal
import time
from dataclasses import dataclass, field

from launcher.job.job import Process
from launcher.job.statuses import TIMED_OUT, describe, shell_status
from launcher.starting import allocation
from launcher.telling.writer import HOLD_BYTES
from launcher.watching.connection import Connection
from launcher.watching.registration import Registration

SILENCE_S = 10  # a host that is silent for this long is lost


class Failure(Exception):
    """Why a job ends.

    Attributes
    ----------
    status : int
        What the launcher exits with.
    member : Member or None
        The process that failed.
    kind : str
        "failed", "asked" (by a signal), "again" (the start did not work out, and is repeated),
        "away" (a host cannot be reached), "hanging" (the stacks are to be printed).
    at : float
        time.monotonic() when it was noticed.
    """

    def __init__(self, message, status=2, member=None, kind="failed"):
        super().__init__(message)
        self.at = time.monotonic()
        self.status, self.member, self.kind = status, member, kind

    def subject(self):
        """The failure in one line."""
        if self.member:
            return f"{self.member.process} on {self.member.process.host}: {self}"
        return str(self).partition("\n")[0]


@dataclass
class Member:
    """A process of the job, and how it ran."""

    process: Process
    connection: Connection
    pid: int = None
    started: float = None  # time.time()
    ended: float = None
    status: int = None  # -n for signal n
    told: bool = False  # the launcher asked it to end
    errors: collections.deque = field(default_factory=lambda: collections.deque(maxlen=20))
    lines: collections.deque = field(default_factory=lambda: collections.deque(maxlen=20))


class Watch:
    """Handles the events of one attempt, one at a time.

    `failure` is the first thing that went wrong. What follows from it is no cause.
    """

    def __init__(self, job, console, record, requests):
        self.job, self.console, self.record, self.requests = job, console, record, requests
        self.events = queue.Queue(maxsize=1000)
        self.connections = {}  # by host
        self.members = {}  # by name of the process
        self.registration = Registration()
        self.failure = None
        self.ending = self.leaving = False
        self.done = False  # all workers have ended with 0: nothing can fail any more
        self.held = False  # the processes are to wait before they write more
        self.limit = HOLD_BYTES  # of output that waits to be written: above it they are
        self.asked = False  # somebody asked for the end: nothing is started again
        self.running_since = None  # time.monotonic() when the processes were started
        self.bound = None  # time.monotonic() when the scheduler began to listen
        self.last_output = self.stepped = time.monotonic()

    def step(self, timeout=0.1):
        """Handle one event and check what needs none; return (connection, report) of the event."""
        try:
            connection, report = self.events.get(timeout=timeout)
        except queue.Empty:
            connection, report = None, {}
        else:
            fields = {name: value for name, value in report.items() if name != "report"}
            getattr(self, "on_" + report["report"])(connection, **fields)
        now = time.monotonic()
        if now - self.stepped > SILENCE_S / 2:  # the launcher was stopped, or swapped out
            for connection in self.connections.values():
                connection.heard()
        self.stepped = now
        for silent in self.connections.values():
            if silent.silent_s() > SILENCE_S and not silent.closed:
                silent.kill()
                self.fail(f"{silent.host}: not heard of for {SILENCE_S} s", 255, kind="away")
        while self.requests:
            self.on_request(self.requests.popleft())
        self.regulate(now)
        if self.job.watchers and self.job.watchers != allocation.watchers():
            self.asked = True  # a restart would be hidden from the batch system, too
            self.fail("the batch script, or who waits for it, was killed", 1)
        if not self.ending:
            self.check_times(now)
        return connection, report

    def waiting_bytes(self):
        """What the slowest of the screen and the log's disk has not taken yet."""
        return max(writer.waiting for writer in (*self.console.writers, self.record.writer))

    def regulate(self, now):
        """Let the processes wait before they write more while the screen or a disk is slow."""
        limit = self.limit - HOLD_BYTES / 2 if self.held else self.limit
        held = self.waiting_bytes() > limit
        if held != self.held:
            self.held = held
            for connection in self.connections.values():
                connection.order("output", held=held)
        if held:
            self.last_output = now  # their silence is our doing

    def fail(self, message, status, member=None, kind="failed"):
        """Note a failure; only the first one is the cause."""
        if not self.failure and not self.leaving and not self.done:
            self.failure = Failure(message, status, member, kind)

    def living(self, role=None):
        """Processes that have not ended."""
        return [
            m for m in self.members.values() if m.ended is None and role in (None, m.process.role)
        ]

    def check_times(self, now):
        """Start, stall and overall time limits."""
        options = self.job.options
        if options.timeout and now - self.job.began > options.timeout:
            self.asked = True  # by the command line
            if self.running_since is None:  # a host that is away, which would be waited for
                self.failure = None
            self.fail(f"--timeout: not done after {options.timeout:g} s", TIMED_OUT, kind="hanging")
        if self.running_since is None:
            return
        if options.stall_timeout and now - self.last_output > options.stall_timeout:
            message = f"--stall-timeout: no output from any process for {options.stall_timeout:g} s"
            self.fail(message, TIMED_OUT, kind="hanging")
        registered = self.registration
        if self.bound is None or registered.complete or not options.start_timeout:
            return
        if now - self.bound > options.start_timeout:
            names = [str(p) for p in self.job.processes[1:] if p.name not in registered.arrived]
            message = f"--start-timeout: after {options.start_timeout:g} s still waiting for "
            self.fail(message + ", ".join(names), TIMED_OUT, kind="hanging")

    # Events

    def on_request(self, number):
        """A signal to the launcher."""
        if number == signal.SIGUSR1:
            names = [p.name for p in self.job.processes if p.role == "worker"]
            for connection in self.connections.values():
                connection.order("signal", number=int(number), names=names)
        elif self.done or (self.failure and number == signal.SIGINT):  # all is ending anyway
            self.asked = True
            self.order_stop(0)
        else:
            self.asked = True
            self.fail(f"stopped by {signal.Signals(number).name}", 128 + number, kind="asked")

    def order_stop(self, grace, names=None):
        """TERM, then KILL after the grace, to the named processes or to all."""
        for member in self.living():
            member.told = member.told or names is None or member.process.name in names
        for connection in self.connections.values():
            connection.order("stop", grace=grace, names=names)

    def on_ready(self, connection, **facts):
        connection.ready = facts
        self.record.host(connection.host, **{k: facts[k] for k in ("hostname", "python")})

    def on_beat(self, connection, **_):
        pass

    on_port = on_address = on_done = on_beat

    def on_started(self, connection, name, pid):
        if name in self.members:
            self.members[name].pid, self.members[name].started = pid, time.time()

    def on_line(self, connection, name, stream, text, end):
        member = self.members.get(name)
        if member is None:  # a check, whose output is for the launcher
            connection.answers.append(text)
            return
        if name == "scheduler" and self.on_registration(text):
            return
        if text:
            member.lines.append(text)  # a command may send its errors there: 2>&1
            if stream == "err":
                member.errors.append(text)
        self.record.line(member.process, text, end)
        self.console.line(member.process, stream, text, end)
        self.last_output = time.monotonic()

    def on_registration(self, text):
        """Read what the scheduler says about the nodes; False if the line is for the user."""
        nodes = self.registration
        before = nodes.complete
        ours = nodes.take(text)
        if ours and self.bound is None:
            self.bound = time.monotonic()
        if nodes.complete and not before:
            for name in nodes.wrong():
                self.fail(f"{name} was given rank {nodes.nodes[name][0]}", 1, kind="again")
            self.on_all_registered()
        return ours and not self.job.shows_ps_lite

    def on_all_registered(self):
        """Attempt says so."""

    def on_said(self, connection, text):
        if connection.ready and not self.leaving:  # before, it may be a greeting, or the cause
            self.console.say(f"{connection.host}: {text}")

    def on_hung(self, connection, name):
        member = self.members.get(name)
        if member and member.process.role == "worker":  # others are idle whenever workers compute
            message = "printed a traceback, and has hung in its exit for 10 s"
            self.fail(message, 1, member)

    def on_asked(self, connection, number):
        """The batch system wants the host back."""
        self.asked = True
        message = f"{connection.host}: the batch system sent {signal.Signals(number).name}"
        self.fail(message, 128 + number, kind="asked")

    def on_leaving(self, connection, why):
        if why != "it was told to":
            self.fail(f"{connection.host}: the supervisor there ends: {why}", 1)

    def on_closed(self, connection, status):
        connection.closed = True
        status = shell_status(status)
        if connection.given_up or (status <= 1 and not connection.ready):  # srun, mpirun: 1
            status = 255
        self.fail(connection.why_closed(), status or 1, kind="away")

    def on_exit(self, connection, name, status, why=""):
        member = self.members.get(name)
        if member is None:
            connection.answers.append(None)
            return
        member.ended, member.status = time.time(), status
        if why:
            member.errors.append(why)
        if status == 0 or member.told:
            return
        if not self.living("worker") and member.process.role != "worker":
            self.console.say(f"{member.process} {describe(status)} after all workers had ended")
            return
        kind, message = "failed", describe(status)
        if name == "scheduler" and "bind failed" in " ".join(member.lines):
            kind = "again"
        self.fail(message, shell_status(status), member, kind)
