"""One try at a job: connect, start, watch, stop."""

import collections
import queue
import secrets
import signal
import threading
import time
from dataclasses import dataclass, field

from launcher import job as jobs
from launcher.connection import Connection
from launcher.registration import Registration

GRACE_S = 3  # between TERM and KILL when something has failed
SILENCE_S = 10  # a host not heard of for this long is lost
FINISH_S = 15  # for servers and scheduler to end by themselves after the last worker
SAVED = 75  # a program's exit status for "stopped on request, after saving"


AGAIN = -1  # in place of a status: the start did not work out, and is worth another try


class Failure(Exception):
    """The job cannot go on. `status` is what the launcher exits with."""

    def __init__(self, message, status=2, process=None):
        super().__init__(message)
        self.status, self.process = status, process


@dataclass
class Member:
    """A process of the job and what became of it."""

    process: jobs.Process
    connection: Connection
    pid: int = None
    started: float = None  # time.time()
    ended: float = None
    status: int = None  # -n for signal n
    why: str = ""
    told: bool = False  # it was the launcher that ended it
    errors: collections.deque = field(default_factory=lambda: collections.deque(maxlen=20))


class Attempt:
    """Runs the job once.

    Parameters
    ----------
    job : Job
    console : Console
    connect : callable
        Gives the command that starts a host's supervisor: `local.supervisor_argv` or ssh's.
    requests : collections.deque
        Signals sent to the launcher, in order, filled by their handlers.
    """

    def __init__(self, job, console, connect, requests, number=1):
        self.job, self.console, self.connect = job, console, connect
        self.requests, self.number = requests, number
        self.events = queue.Queue(maxsize=10000)
        self.connections = {}  # by host
        self.members = {}  # by name
        self.failure = None
        self.request = None  # the signal that asked for an end
        self.registration = Registration()
        self.leaving = False
        self.over = threading.Event()

    def run(self):
        """Run to the end.

        Returns
        -------
        int
            0 when all workers ended with 0.

        Raises
        ------
        Failure
        """
        try:
            threading.Thread(target=self._beat, daemon=True).start()
            self._connect()
            self._start(*self._rendezvous())
            while not self.failure and not self._workers_done():
                self._step()
            self._finish()
        finally:
            self._leave()
            self.over.set()
        if self.failure:
            raise self.failure
        return 0

    # Before anything runs

    def _connect(self):
        for host in self.job.hosts:
            argv = self.connect(host, self.job.options)
            self.connections[host] = Connection(host, argv, self.events, self.job.local_env)
        self._ask_all("ready", {connection: None for connection in self.connections.values()})
        mark = secrets.token_hex(8)
        for connection in self.connections.values():
            connection.order("hold", mark=mark)

    def _ask_all(self, kind, orders):
        """Send each connection its order (name, fields) and wait for all reports of a kind."""
        answers = {}
        for connection, order in orders.items():
            if order:
                connection.order(order[0], **order[1])
        while len(answers) < len(orders):
            connection, report = self._step()
            if self.failure:
                raise self.failure
            if report.get("report") == kind:
                answers[connection] = report
        return answers

    def _rendezvous(self):
        """Where the scheduler will listen, and every host's own address."""
        first = self.connections[self.job.hosts[0]]
        root = "127.0.0.1"
        addresses = {host: root for host in self.job.hosts}
        asked = {first: ("port", {"address": root, "port": None})}
        return root, self._ask_all("port", asked)[first]["port"], addresses

    def _start(self, root, port, addresses):
        for process in self.job.processes:
            connection = self.connections[process.host]
            self.members[process.name] = Member(process, connection)
            connection.order(
                "start",
                name=process.name,
                command=self.job.argv,
                cwd=self.job.directory,
                env=jobs.environment(
                    self.job,
                    process,
                    root,
                    port,
                    addresses[process.host],
                    connection.ready["processors"],
                    self.number,
                ),
            )

    # While it runs

    def _step(self, timeout=0.1):
        """Handle one event, or what has to be noticed without one; return the event."""
        try:
            connection, report = self.events.get(timeout=timeout)
        except queue.Empty:
            connection, report = None, {}
        else:
            getattr(self, "_on_" + report["report"])(connection, **report)
        for silent in self.connections.values():
            if silent.silent_s() > SILENCE_S and not silent.closed:
                silent.kill()
                self._fail(f"{silent.host}: not heard of for {SILENCE_S} s", 255)
        while self.requests:
            self._on_request(self.requests.popleft())
        return connection, report

    def _fail(self, message, status, process=None):
        """The first failure is the cause; what it brings about is not."""
        if not self.failure:
            self.failure = Failure(message, status, process)

    def _on_request(self, number):
        name = signal.Signals(number).name
        if number == signal.SIGUSR1:
            names = [p.name for p in self.job.processes if p.role == "worker"]
            for connection in self.connections.values():
                connection.order("signal", number=number, names=names)
        elif self.request is None:
            self.request = number
            self._fail(f"stopped by {name}", 128 + number)
        elif number == signal.SIGINT:
            self._order_stop(0)

    def _on_ready(self, connection, **report):
        connection.ready = report

    def _on_beat(self, connection, **_):
        pass

    _on_port = _on_address = _on_done = _on_beat

    def _on_started(self, connection, name, pid, **_):
        self.members[name].pid = pid
        self.members[name].started = time.time()

    def _on_line(self, connection, name, stream, text, end, **_):
        member = self.members[name]
        if stream == "err":
            if name == "scheduler" and self._registered(text):
                return
            member.errors.append(text)
        self.console.line(member.process, stream, text, end)

    def _registered(self, text):
        """Take in what the scheduler says of the nodes; False if it is for the user."""
        before = self.registration.complete
        ours = self.registration.take(text)
        if self.registration.complete and not before:
            for name in self.registration.wrong():
                rank = self.registration.nodes[name][0]
                self._fail(f"{name} was given rank {rank}", AGAIN)
        return ours

    def _on_said(self, connection, text, **_):
        self.console.say(f"{connection.host}: {text}")

    def _on_hung(self, connection, name, **_):
        process = self.members[name].process
        self._fail(f"{process} printed an error and then did nothing for 10 s", 1, process)

    def _on_leaving(self, connection, why, **_):
        if not self.failure and why != "it was told to":
            self._fail(f"the supervisor on {connection.host} ends because {why}", 1)

    def _on_closed(self, connection, status, **_):
        if not self.failure and not self.leaving:
            status = 128 - status if status < 0 else status or 1
            words = ": " + connection.last_words[-1] if connection.last_words else ""
            self._fail(f"{connection.host}: the connection ended{words}", status)

    def _on_exit(self, connection, name, status, why="", **_):
        member = self.members[name]
        member.ended, member.status, member.why = time.time(), status, why
        if status and not self.failure and not self._workers_done():
            self._fail(
                f"{member.process} {describe(status)}" + (f": {why}" if why else ""),
                128 - status if status < 0 else status,
                member.process,
            )

    def _living(self, role=None):
        return [
            m for m in self.members.values() if m.ended is None and role in (None, m.process.role)
        ]

    def _workers_done(self):
        return bool(self.members) and not self._living("worker")

    # The end

    def _finish(self):
        """Stop what still runs: gently on request, at once after a failure."""
        graceful = self.request is not None or (self.failure and self.failure.status == SAVED)
        if graceful:
            grace = self.job.options.grace
            self._order_stop(grace, [m.process.name for m in self._living("worker")])
            self._wait(grace + GRACE_S, "worker")
        elif not self.failure:
            self._wait(FINISH_S)
        workers = [m for m in self.members.values() if m.process.role == "worker"]
        if self.request and workers and all(m.status == SAVED for m in workers):
            self.failure.status = SAVED
        self._order_stop(GRACE_S)
        self._wait(GRACE_S + 2)

    def _order_stop(self, grace, names=None):
        for member in self._living():
            member.told = True
        for connection in self.connections.values():
            connection.order("stop", grace=grace, names=names)

    def _wait(self, seconds, role=None):
        """Handle events until no process of this role is left on any host that can be reached."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if not any(not m.connection.closed for m in self._living(role)):
                break
            self._step()

    def _leave(self):
        """Let the supervisors go, and see that they do."""
        self.leaving = True
        for connection in self.connections.values():
            connection.order("leave")
        end = time.monotonic() + GRACE_S + 2
        while time.monotonic() < end and not all(c.closed for c in self.connections.values()):
            self._step()
        for connection in self.connections.values():
            connection.kill()

    def _beat(self):
        """Let the hosts know that the launcher lives, also while it waits for a slow screen."""
        while not self.over.wait(1):
            for connection in list(self.connections.values()):
                connection.order("beat")


def describe(status):
    """An exit status in words."""
    if status < 0:
        return f"was killed by {signal.Signals(-status).name}"
    return f"ended with status {status}"
