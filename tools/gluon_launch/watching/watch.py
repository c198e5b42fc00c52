"""Handle what happens during a try, one event at a time."""

import queue
import re
import signal

from gluon_launch.job.statuses import SAVED, UNREACHABLE, USAGE
from gluon_launch.remote.protocol import SILENCE_S
from gluon_launch.starting import allocation
from gluon_launch.telling.progress import workers
from gluon_launch.watching.flow import Flow
from gluon_launch.watching.limits import Limits
from gluon_launch.watching.links import Links
from gluon_launch.watching.members import Members
from gluon_launch.watching.outcome import Failure, Outcome
from gluon_launch.watching.registration import Registration

ANSWERS = ("bring", "port", "address", "own")  # reports that only `Watch.ask` waits for
ANSWER_S = 120  # for a host to answer: a folder on a network that is away blocks for ever


class Watch:
    """Takes the reports of the hosts and the requests to the launcher; looks at the clock.

    What is known so far is in its parts: outcome, links, members, limits, flow, registration.
    """

    def __init__(self, session):
        self.job, self.console, self.record = session.job, session.console, session.record
        self.requests, self.world = session.requests, session.world
        self.events = self.world.events()  # of all connections
        self.outcome = Outcome(self.world)
        self.links = Links(session, self.events, self.outcome)
        self.registration = Registration()
        self.members = Members(session, self.outcome, self.links, self.registration)
        self.limits = Limits(session, self.outcome, self.registration, self.members)
        self.flow = Flow(self.links, [*self.console.writers, self.record.writer])
        self.is_ending = False  # the processes are being stopped: no time limit counts any more
        self.stepped = self.world.monotonic()
        takes = {
            self: ("line", "wrote"),
            self.links: ("ready", "said", "asked", "done", "leaving", "closed"),
            self.members: ("started", "hung", "idle", "prepared", "left", "exit"),
        }
        self.handlers = dict.fromkeys(("beat", *ANSWERS), lambda connection, **fields: None)
        for part, reports in takes.items():
            self.handlers.update({name: getattr(part, f"take_{name}") for name in reports})

    def step(self):
        """Handle one event and check what needs none; return (connection, report) of the event."""
        try:
            connection, report = self.events.get(timeout=0.1)
        except queue.Empty:
            connection, report = None, {}
        else:
            fields = {name: value for name, value in report.items() if name != "report"}
            self.handlers[report["report"]](connection, **fields)
        now = self.world.monotonic()
        if now - self.stepped > SILENCE_S / 2:  # the launcher was stopped, or swapped out
            self.links.forgive_silence()
        self.stepped = now
        self.links.lose_silent()
        while self.requests:
            self.take_request(self.requests.popleft())
        self.flow.regulate()
        if self.flow.is_held:
            self.limits.last_output = now  # the silence of the processes is our doing
        if self.job.watchers and self.job.watchers != allocation.watchers():
            self.outcome.is_asked = True  # a restart would be hidden from the batch system, too
            self.outcome.fail("the batch script, or who waits for it, was killed", 1)
        if not self.is_ending:
            self.limits.check(now)
        if self.console.is_due():
            hosts = self.links.by_host if self.console.several_hosts else ()
            self.console.draw(self.phase(), hosts)
        return connection, report

    def phase(self):
        """Return what is done while the processes do not run: for the bottom of a terminal."""
        if self.is_ending:
            return self.ending()
        if self.limits.running_since is None:
            return self.limits.phase or "starting"
        nodes = self.registration
        late = [p for p in self.job.processes[1:] if p.name not in nodes.arrived]
        if nodes.has_workers() and not nodes.complete:
            ranks = [p.rank for p in late if p.role == "worker"]
            names = [workers(ranks)] if ranks else map(str, late)
            return f"waiting for {', '.join(names)} to import MXNet and make its store"
        if self.members.has_spoken:
            return ""
        if nodes.complete:
            return "no output yet: all workers have found each other"
        is_python = re.search(r"\bpython[\d.]*(\s|$)", " ".join(self.job.command))
        loaded = "Python and MXNet are" if is_python else "the program is"
        return f"no output yet: {loaded} being loaded"

    def ending(self):
        """Return what the end of a try waits for."""
        ranks = [member.process.rank for member in self.members.living("worker")]
        failure = self.outcome.failure
        if ranks and failure and (failure.kind == "asked" or failure.status == SAVED):
            grace = self.job.options.grace
            return f"stopping: up to {grace:g} s for {workers(ranks)} to save and end"
        if ranks:
            return f"waiting for {workers(ranks)} to end"
        return "all workers have ended: ending the rest"

    def wait(self, seconds, role=None):
        """Handle events until no process of this role is left on any host that can be reached."""
        end = self.world.monotonic() + seconds
        while self.world.monotonic() < end and not self.members.are_out_of_reach(role):
            self.step()

    def ask(self, kind, orders):
        """Send each connection its order (name, fields); return its report of this kind.

        Raises
        ------
        Failure
            A host does not answer, or says why it cannot.
        """
        answers = {}
        for connection, (name, fields) in orders.items():
            connection.order(name, **fields)
        end = self.world.monotonic() + ANSWER_S
        while len(answers) < len(orders):
            silent = [str(c.host) for c in orders if c not in answers]
            what = "checking" if kind == "exit" else "waiting for an answer of"
            self.limits.phase = f"{what} {', '.join(silent)}"
            connection, report = self.step()
            self.outcome.raise_failure()
            if self.world.monotonic() > end:
                why = f"no answer within {ANSWER_S} s (a folder on a network that is away?)"
                raise Failure("\n".join(f"{host}: {why}" for host in silent), UNREACHABLE)
            if report.get("report") == kind and report.get("name", "check") == "check":
                answers[connection] = report
        wrong = [f"{c.host}: {answers[c]['why']}" for c in orders if answers[c].get("why")]
        if wrong:
            raise Failure("\n".join(wrong))
        return answers

    def take_request(self, number):
        """A signal to the launcher."""
        outcome = self.outcome
        if number == signal.SIGUSR1:
            workers = [p.name for p in self.job.processes if p.role == "worker"]
            self.members.signal(number, workers)
            return
        outcome.is_asked = True
        name = "Ctrl-C" if number == signal.SIGINT else signal.Signals(number).name
        if outcome.is_done or (outcome.failure and number == signal.SIGINT):  # all is ending anyway
            self.console.answer(f"{name}: ending all processes at once")
            self.members.stop(0)
        else:
            self.console.answer(f"{name}: stopping the job{self.who_saves()}")
            outcome.fail(f"stopped by {signal.Signals(number).name}", 128 + number, kind="asked")

    def who_saves(self):
        """Return for which workers a stop that was asked for waits, and for how long."""
        ranks = [member.process.rank for member in self.members.living("worker")]
        if not ranks:
            return ""
        have = "have" if len(ranks) > 1 else "has"
        limit = f"{self.job.options.grace:g} s to save and end (--grace)"
        return f": {workers(ranks)} {have} {limit}; Ctrl-C again ends all at once"

    def take_line(self, connection, name, stream, text, end):
        """A line of a process; the scheduler's may be ps-lite's own, which few want to see."""
        is_own = name == "scheduler" and self.take_registration(text)
        if is_own and not self.job.shows_ps_lite:
            return
        self.members.take_line(connection, name, stream, text, end)
        self.limits.last_output = self.world.monotonic()

    def take_wrote(self, connection, name):
        """A process wrote something that is not a line yet."""
        if name != "scheduler":  # else it may be ps-lite's own
            self.limits.last_output = self.world.monotonic()

    def take_registration(self, text):
        """Read what the scheduler says about the nodes; False if ps-lite did not write the line."""
        nodes = self.registration
        before = nodes.complete
        if not nodes.take(text):
            return False
        self.limits.bound_at = self.limits.bound_at or self.world.monotonic()
        if nodes.complete and not before:
            for name in nodes.wrong():
                self.outcome.fail(f"{name} was given rank {nodes.nodes[name][0]}", 1, kind="again")
            if nodes.nodes and self.job.backend == "horovod":
                self.outcome.fail("-s 0 is for Horovod: this program needs servers", USAGE)
            self.tell_placement()
        return True

    def tell_placement(self):
        """All processes have registered: say which host has which."""
        for host in self.links.by_host if self.console.several_hosts else ():
            names = [str(process) for process in self.job.processes if process.host == host]
            self.console.say(f"{host}: {', '.join(names)}")
        self.record.write()
