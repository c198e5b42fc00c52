"""One try at a job: connect, check, copy, start, watch, stop."""

import secrets
import shutil
import signal
import threading

from gluon_dist import contract

from gluon_launch.job.addresses import scheduler_address
from gluon_launch.job.environment import process_environment
from gluon_launch.job.statuses import SAVED, UNREACHABLE
from gluon_launch.remote.protocol import KILL_S
from gluon_launch.starting import brought, contents
from gluon_launch.telling.hints import APART, UNPREPARED
from gluon_launch.watching import places, preflight
from gluon_launch.watching.outcome import Failure
from gluon_launch.watching.watch import Watch

FINISH_S = 15  # for servers and scheduler to end by themselves after the last worker
TELL_S = 5  # a copy that takes longer is told of
DUMP_S = 2  # for stacks to be written


class Attempt:
    """Runs the job once. `run` tells the story; the methods follow in its order.

    `number` says which try this is, from 1; with `prepare` the hosts are checked and copied to
    first.
    """

    def __init__(self, session, number, prepare):
        self.job, self.console, self.record = session.job, session.console, session.record
        self.world, self.number, self.prepare = session.world, number, prepare
        self.watch = Watch(session)
        self.outcome, self.links = self.watch.outcome, self.watch.links
        self.members, self.limits = self.watch.members, self.watch.limits
        self.interfaces = {}  # of the network, by host, where they were asked for
        # Not the job's: what ends the processes of a try must not find those of the next.
        self.mark = f"LAUNCH_MARK_{secrets.token_hex(8)}"
        self.record.follow(number, self.members.by_name)

    def run(self):
        """Run to the end; raises Failure unless all workers end with 0."""
        began = self.job.began if self.number == 1 else self.world.monotonic()
        self.console.begin_try(began, self.number)
        over = threading.Event()
        threading.Thread(target=self.beat, args=(over,), daemon=True).start()
        try:
            self.connect()
            root, addresses = self.find_addresses()
            port = self.find_port(root)
            if self.prepare:
                self.prepare_hosts(f"{root}:{port}")
            if not self.job.options.check:
                self.start(root, port, addresses)
                while not self.outcome.failure and self.members.living("worker"):
                    self.watch.step()
                self.finish()
        finally:
            self.leave()
            over.set()
            self.record.write()
        self.outcome.raise_failure()

    def ran_s(self):
        """Return the seconds from the processes' start to the failure; None if none was started."""
        since = self.limits.running_since
        return None if since is None else self.outcome.failed_at - since

    def beat(self, over):
        """Let the hosts know that the launcher lives."""
        while not over.wait(1):
            self.links.order("beat")

    # Before anything runs

    def connect(self):
        """Reach every host, or say which ones cannot be reached."""
        self.links.open()
        failure = None
        while not self.links.are_settled():
            late = [str(c.host) for c in self.links.all() if not (c.ready or c.closed)]
            self.limits.phase = f"logging in to {', '.join(late)}"
            self.watch.step()
            self.links.open_again()
            failure = self.outcome.failure
            is_enough = self.outcome.is_asked or self.links.logins.asked  # others may take long
            if failure and (is_enough or failure.kind != "away"):
                raise failure
        if failure:  # name all of them, not only the first
            lost = [c.why_closed() for c in self.links.all() if c.closed]
            raise Failure("\n".join(lost), failure.status, kind="away")
        wrong = places.wrong(self.job, self.links.all(), self.world, self.watch.ask)
        if wrong:
            raise Failure("\n".join(wrong), UNREACHABLE)
        self.links.unite()
        for part in [] if self.job.options.no_prepare else brought.parts():
            order = "bring", {"part": part}
            self.watch.ask("bring", dict.fromkeys(self.links.all(), order))
        for number, connection in enumerate(self.links.all()):  # two may be on one machine
            mark = f"{self.mark}_{number}"
            connection.order("hold", mark=mark, asks=self.job.way.signals_hosts)
        self.links.order("output", held=self.watch.flow.is_held)  # one that was late has not heard

    def find_addresses(self):
        """Return the address of the scheduler, and each host's own that routes to it."""
        everyone = self.links.all()
        interface = self.job.interface
        if interface:
            addresses = self.own_addresses(everyone, interface=interface)
            return addresses[self.job.hosts[0]], addresses
        if len(everyone) == 1 and self.job.backend == "horovod":
            return "127.0.0.1", self.own_addresses(everyone, toward="127.0.0.1")
        if len(everyone) == 1:
            return "127.0.0.1", {everyone[0].host: "127.0.0.1"}
        reached = [self.job.way.address(c.host, c.ready) for c in everyone]
        root, toward = scheduler_address(reached)
        if toward:
            root = self.own_addresses(everyone[:1], toward=toward)[everyone[0].host]
        return root, self.own_addresses(everyone, toward=root)

    def own_addresses(self, connections, **which):
        """Return the IPv4 address of each host: an interface's, or that which routes to a host."""
        found = self.watch.ask("address", dict.fromkeys(connections, ("address", which)))
        self.interfaces.update((c.host, found[c]["interface"]) for c in connections)
        return {c.host: found[c]["address"] for c in connections}

    def find_port(self, root):
        """Return a free port for the scheduler, held until it starts."""
        first = self.links.first()
        order = "port", {"address": root, "port": self.job.options.port}
        return self.watch.ask("port", {first: order})[first]["port"]

    def prepare_hosts(self, address):
        """Check the hosts and copy to them; what the copy may bring is looked for after it."""
        job, options = self.job, self.job.options
        if not options.no_check:
            self.check(address, is_before_copy=bool(job.target))
        if job.target:
            self.copy()
            if not (options.no_check or options.check):
                self.check(address)

    def check(self, address, is_before_copy=False):
        """Ask every host whether it is ready, and whether it reaches the scheduler's address."""
        job, orders = self.job, {}
        for connection in self.links.all():
            connection.answers = []
            question = preflight.question(job, connection.ready, address, is_before_copy)
            orders[connection] = "start", question
        ended = self.watch.ask("exit", orders)
        files = contents.look(job.source, job.options).sizes if is_before_copy else {}
        needed, listed = sum(files.values()), files if job.options.check else ()
        findings, fixes = [], []
        for c in orders:
            status = ended[c]["status"]
            found = preflight.judge(
                c.host, c.ready, c.answers, status, needed, listed, job.way.knows
            )
            self.record.host(c.host, mxnet=found.mxnet)
            findings.append(found)
            fixes += found.fixes
        if fixes or job.options.check:
            rows = [found.row for found in findings]
            self.console.say(preflight.table(rows, job.way.name, self.console.room()))
        for line in preflight.about_gpus(findings):
            self.console.say(line)
        if fixes:
            raise Failure("\n".join(fixes))

    def copy(self):
        """Copy the job's folder to every host; for `--check` only see whether rsync can."""
        if not shutil.which("rsync"):
            raise Failure("rsync is not installed here: apt-get install rsync")
        left_out = contents.look(self.job.source, self.job.options).left_out()
        if left_out:
            self.console.say(left_out)
            self.record.write(left_out=left_out)
        copy = self.world.copy(self.links.by_host, self.job)
        try:
            copy.start()
            self.follow(copy)
        except OSError as error:  # as with a full disk
            raise Failure(self.job.way.why_not("rsync", error)) from None
        finally:
            copy.kill()
        errors = copy.errors()
        if errors:
            raise Failure("\n".join(errors))

    def follow(self, copy):
        """Wait until a copy has ended on all hosts; say so if it takes long."""
        began, has_told = self.world.monotonic(), False
        while copy.poll():
            self.limits.phase = f"copying to {', '.join(map(str, copy.poll()))}"
            if not has_told and self.world.monotonic() - began > TELL_S:
                self.console.say(self.limits.phase)
                has_told = True
            self.watch.step()
            self.outcome.raise_failure()

    # Start and stop

    def start(self, root, port, addresses):
        """Start every process."""
        self.links.first().order("release")
        job, number = self.job, self.job.earlier_tries + self.number
        for process in job.processes:
            connection = self.links.by_host[process.host]
            self.members.add(process, connection)
            self.record.open(process)
            processors = connection.ready["processors"]
            address = addresses[process.host]
            interface = self.interfaces.get(process.host)
            env = process_environment(
                job, process, root, port, address, processors, number, interface=interface
            )
            if self.console.progress and process.role == "worker":
                env[contract.PROGRESS] = "1"
            command = job.way.shielded(process.role, job.argv)
            connection.order(
                "start", name=process.name, command=command, cwd=job.directory, env=env
            )
            self.record.host(process.host, address=address, processors=processors)
        self.limits.last_output = self.limits.running_since = self.world.monotonic()
        self.record.write()

    def finish(self):
        """Stop what still runs: gently on request, at once after a failure."""
        members, failure = self.members, self.outcome.failure
        self.watch.is_ending = True
        self.watch.flow.allow_last_words()
        if failure and (failure.kind == "asked" or failure.status == SAVED):
            grace = self.job.options.grace
            members.stop(grace, members.names("worker"))
            self.watch.wait(grace + KILL_S, "worker")
            workers = [m for m in members.by_name.values() if m.process.role == "worker"]
            if failure.kind == "asked" and all(m.status == SAVED for m in workers):
                failure.status = SAVED
        elif failure and failure.kind == "hanging":
            # Python prints the stacks of all threads (PYTHONFAULTHANDLER), and ends.
            members.signal(signal.SIGABRT, members.names())
            self.watch.wait(DUMP_S)
        elif not failure:
            self.outcome.is_done = True
            if self.watch.registration.has_workers():
                if self.job.backend == "ps-lite":  # Horovod's rendezvous does not see the end
                    self.watch.wait(FINISH_S)
            elif self.job.count("worker") > 1 and members.living("scheduler"):
                self.console.say(APART.format(self.job.count("worker")))
        for role in self.job.way.deaf:
            members.stop(0, members.names(role))
        members.stop(KILL_S)
        self.watch.wait(KILL_S + 2)
        self.tell_unprepared()
        self.members.tell_ignored()

    def tell_unprepared(self):
        """Name the workers that made a store, and whose MXNet nothing has made right.

        Of one whose end was not heard of, as its host is away, that is not known.
        """
        workers = [m for m in self.members.by_name.values() if m.process.role == "worker"]
        ended = [m for m in workers if m.ended is not None]
        names = ", ".join(str(m.process) for m in ended if not m.prepared)
        is_wanted = not self.job.options.no_prepare and self.watch.registration.has_workers()
        if names and is_wanted:
            self.console.say(UNPREPARED.format(names))

    def leave(self):
        """End the supervisors."""
        self.outcome.is_over = True
        self.links.leave()
        end = self.world.monotonic() + KILL_S + 2
        while self.world.monotonic() < end and not self.links.have_left():
            self.watch.step()
        self.links.give_back()
        for connection in [*self.links.all(), *self.links.retired]:
            connection.kill()
