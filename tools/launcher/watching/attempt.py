"""One try at a job: connect, check, copy, start, watch, stop."""

import secrets
import shutil
import signal
import threading
import time

from launcher.job import job as jobs
from launcher.job.addresses import scheduler_address
from launcher.job.statuses import SAVED
from launcher.starting import rsync
from launcher.telling.writer import LAST_BYTES
from launcher.watching import preflight
from launcher.watching.logins import Logins
from launcher.watching.watch import Failure, Member, Watch

GRACE_S = 3  # between TERM and KILL when something has failed
FINISH_S = 15  # for servers and scheduler to end by themselves after the last worker
DUMP_S = 2  # for stacks to be written
ANSWER_S = 120  # for a host to answer: a folder on a network that is away blocks for ever


class Attempt(Watch):
    """Runs the job once. `run` tells the story; the methods follow in its order.

    Parameters
    ----------
    job : Job
    console : Console
    record : Record
    requests : collections.deque
        Signals sent to the launcher, in order, filled by their handlers.
    number : int
        Which try this is, from 1.
    prepare : bool
        Check the hosts and copy to them first.
    """

    def __init__(self, job, console, record, requests, number, prepare=True):
        super().__init__(job, console, record, requests)
        self.number, self.prepare = number, prepare
        # Not the job's: what ends the processes of a try must not find those of the next.
        self.mark = f"LAUNCH_MARK_{secrets.token_hex(8)}"
        self.over = threading.Event()
        self.logins = Logins(job, self.events)

    def run(self):
        """Run to the end; raises Failure unless all workers end with 0."""
        try:
            threading.Thread(target=self.beat, daemon=True).start()
            self.connect()
            root, addresses = self.find_addresses()
            port = self.find_port(root)
            if self.prepare:
                if not self.job.options.no_check:
                    self.check(f"{root}:{port}")
                if self.job.target:
                    self.copy()
                if self.job.options.check:
                    return
            self.start(root, port, addresses)
            while not self.failure and self.living("worker"):
                self.step()
            self.finish()
        finally:
            self.leave()
            self.over.set()
            self.record.attempt(self)
        if self.failure:
            raise self.failure

    def beat(self):
        """Let the hosts know that the launcher lives."""
        while not self.over.wait(1):
            for connection in list(self.connections.values()):
                connection.order("beat")

    # Before anything runs

    def connect(self):
        """Reach every host, or say which ones cannot be reached."""
        for host in dict.fromkeys(self.job.hosts):
            self.connections[host] = self.logins.open(host)
        while not all(c.ready or c.closed for c in self.connections.values()):
            self.step()
            for host in self.logins.take_due():
                self.connections[host] = self.logins.open(host)
            self.logins.give_up_slow(self.connections.values())
            if self.failure and (self.asked or self.failure.kind != "away"):
                raise self.failure
        if self.failure:  # name all of them, not only the first
            lost = [c.why_closed() for c in self.connections.values() if c.closed]
            raise Failure("\n".join(lost), self.failure.status, kind="away")
        for connection in self.connections.values():
            connection.order("hold", mark=self.mark, asks=self.job.way.is_batch_system)
            connection.order("output", held=self.held)  # which one that was late has not heard

    def on_closed(self, connection, status):
        """Try a login again that a busy server dropped; any other end is a failure."""
        if self.failure or not self.logins.postpone(connection):
            super().on_closed(connection, status)

    def find_addresses(self):
        """The address of the scheduler, and each host's own that routes to it."""
        everyone = list(self.connections.values())
        interface = self.job.options.interface
        if interface:
            orders = {c: ("address", {"interface": interface}) for c in everyone}
            found = self.ask("address", orders)
            addresses = {c.host: found[c]["address"] for c in everyone}
            return addresses[self.job.hosts[0]], addresses
        if len(everyone) == 1:
            return "127.0.0.1", {everyone[0].host: "127.0.0.1"}
        reached = [self.job.way.address(c.host, c.ready) for c in everyone]
        root, toward = scheduler_address(reached)
        if toward:
            root = self.own_addresses(everyone[:1], toward)[everyone[0].host]
        return root, self.own_addresses(everyone, root)

    def find_port(self, root):
        """A free port for the scheduler, held until it starts."""
        first = self.connections[self.job.hosts[0]]
        order = "port", {"address": root, "port": self.job.options.port}
        return self.ask("port", {first: order})[first]["port"]

    def check(self, address):
        """Ask every host whether it is ready, and whether it reaches the scheduler's address."""
        job, orders = self.job, {}
        for connection in self.connections.values():
            connection.answers = []
            orders[connection] = "start", preflight.question(job, connection.ready, address)
        ended = self.ask("exit", orders)
        needed = rsync.size_of_copy(job) if job.target else 0
        rows, fixes = [], []
        for c in orders:
            found = preflight.judge(c.host, c.ready, c.answers, ended[c]["status"], needed)
            self.record.host(c.host, mxnet=found.mxnet)
            rows.append(found.row)
            fixes += found.fixes
        if fixes or job.options.check:
            self.console.say(preflight.table(rows))
        if fixes:
            raise Failure("\n".join(fixes))

    def copy(self):
        """Copy the job's folder to every host; for `--check` only see whether rsync can."""
        if not shutil.which("rsync"):
            raise Failure("rsync is not installed here: apt-get install rsync")
        copy = rsync.Copy(self.connections, self.job)
        try:
            copy.start()
            while not copy.poll():
                self.step()
                self.raise_failure()
        finally:
            copy.kill()
        errors = copy.errors()
        if errors:
            raise Failure("\n".join(errors))

    def own_addresses(self, connections, toward):
        """The IPv4 address of each host that routes to another one."""
        found = self.ask("address", {c: ("address", {"toward": toward}) for c in connections})
        return {c.host: found[c]["address"] for c in connections}

    def raise_failure(self):
        """End the try if something has failed."""
        if self.failure:
            raise self.failure

    def ask(self, kind, orders):
        """Send each connection its order (name, fields); return its report of this kind."""
        answers = {}
        for connection, (name, fields) in orders.items():
            connection.order(name, **fields)
        end = time.monotonic() + ANSWER_S
        while len(answers) < len(orders):
            connection, report = self.step()
            self.raise_failure()
            if time.monotonic() > end:
                silent = [c.host for c in orders if c not in answers]
                why = f"no answer within {ANSWER_S} s (a folder on a network that is away?)"
                raise Failure("\n".join(f"{host}: {why}" for host in silent), 255)
            if report.get("report") == kind and report.get("name", "check") == "check":
                answers[connection] = report
        wrong = [f"{c.host}: {answers[c]['why']}" for c in orders if answers[c].get("why")]
        if wrong:
            raise Failure("\n".join(wrong))
        return answers

    # Start and stop

    def start(self, root, port, addresses):
        """Start every process."""
        self.connections[self.job.hosts[0]].order("release")
        number = self.job.earlier_tries + self.number
        for process in self.job.processes:
            connection = self.connections[process.host]
            self.members[process.name] = Member(process, connection)
            self.record.open(process)
            processors = connection.ready["processors"]
            address = addresses[process.host]
            env = jobs.environment(self.job, process, root, port, address, processors, number)
            command, cwd = self.job.way.shielded(process.role, self.job.argv), self.job.directory
            connection.order("start", name=process.name, command=command, cwd=cwd, env=env)
            self.record.host(process.host, address=address, processors=processors)
        self.last_output = self.running_since = time.monotonic()
        self.record.attempt(self)

    def on_all_registered(self):
        for host in self.connections if self.job.way.tells_hosts else ():
            names = [str(process) for process in self.job.processes if process.host == host]
            self.console.say(f"{host}: {', '.join(names)}")
        self.record.attempt(self)

    def finish(self):
        """Stop what still runs: gently on request, at once after a failure."""
        self.ending = True
        self.limit = self.waiting_bytes() + LAST_BYTES * len(self.connections)
        workers = [m for m in self.members.values() if m.process.role == "worker"]
        failure = self.failure
        if failure and (failure.kind == "asked" or failure.status == SAVED):
            grace = self.job.options.grace
            self.order_stop(grace, [m.process.name for m in self.living("worker")])
            self.wait(grace + GRACE_S, "worker")
            if failure.kind == "asked" and all(m.status == SAVED for m in workers):
                failure.status = SAVED
        elif failure and failure.kind == "hanging":
            self.dump_stacks()
        elif not failure:
            self.done = True
            self.wait(FINISH_S)
        if self.job.way.is_batch_system:  # where they ignore TERM
            others = [m.process.name for m in self.living() if m.process.role != "worker"]
            self.order_stop(0, others)
        self.order_stop(GRACE_S)
        self.wait(GRACE_S + 2)

    def dump_stacks(self):
        """Python prints the stacks of all threads on SIGABRT (PYTHONFAULTHANDLER), and ends."""
        names = [member.process.name for member in self.living()]
        for connection in self.connections.values():
            connection.order("signal", number=int(signal.SIGABRT), names=names)
        self.wait(DUMP_S)

    def wait(self, seconds, role=None):
        """Handle events until no process of this role is left on any host that can be reached."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if all(member.connection.closed for member in self.living(role)):
                break
            self.step()

    def leave(self):
        """End the supervisors."""
        self.leaving = True
        for host in self.logins.due:  # dropped, and not tried again
            self.connections[host].closed = True
        for connection in self.connections.values():
            connection.order("leave")
        end = time.monotonic() + GRACE_S + 2
        while time.monotonic() < end and not all(c.closed for c in self.connections.values()):
            self.step()
        for connection in self.connections.values():
            connection.kill()
