"""The connections of one try, and what is reported of the hosts themselves."""

import collections
import signal

from gluon_launch.job.hosts import Host
from gluon_launch.job.statuses import UNREACHABLE, shell_status
from gluon_launch.remote.protocol import SILENCE_S
from gluon_launch.starting.rsync import LINGER_S
from gluon_launch.watching.logins import Logins
from gluon_launch.watching.outcome import Failure


class Links:
    """A `Connection` to each host of the job."""

    def __init__(self, session, events, outcome):
        self.job, self.console, self.record = session.job, session.console, session.record
        self.world, self.outcome = session.world, outcome
        self.logins = Logins(self.job, self.world, events)
        self.by_host = {}
        self.retired = []  # to a machine that has another connection
        self.done = {}  # when a supervisor said that it has ended all, on the clock of the world

    def all(self):
        """Return all connections, also while another thread opens one again."""
        return list(self.by_host.values())

    def first(self):
        """Return the connection to the host of the scheduler."""
        return self.by_host[self.job.hosts[0]]

    def order(self, order, **fields):
        """Send an order to every host."""
        for connection in self.all():
            connection.order(order, **fields)

    # Open and close

    def open(self):
        """Begin to log in to every host."""
        self.logins.ask(self.console.say)
        for host in dict.fromkeys(self.job.hosts):
            self.by_host[host] = self.logins.open(host)

    def are_settled(self):
        """Return whether every login is done, or lost for good."""
        return all(connection.ready or connection.closed for connection in self.all())

    def open_again(self):
        """Try dropped logins again, and give up those that take too long."""
        for host in self.logins.take_due():
            self.by_host[host] = self.logins.open(host)
        self.logins.give_up_slow(self.all())

    def unite(self):
        """Count a machine that was given under several names as one host, the first of them."""
        if self.logins.asked:
            self.name()
            return
        first = {}
        for connection in self.all():
            host, ready = connection.host, connection.ready
            known = first.setdefault(self.job.way.machine(host, ready), connection)
            if known is connection:
                continue
            what = f"{host.address} and {known.host.address} are the same machine"
            if ready["uid"] != known.ready["uid"]:
                raise Failure(f"{what}, with different users: write one of them for both")
            self.console.say(f"{what}: they count as one host, {known.host.address}")
            self.record.host(host, same_as=known.host.name)
            self.job.unite(host, known.host)
            connection.order("leave")
            self.retired.append(self.by_host.pop(host))

    def name(self):
        """Name the hosts that came by what they call themselves, and wait for no other."""
        self.logins.asked.close()
        names, found, first = collections.Counter(), {}, {}
        for old, connection in self.by_host.items():
            name = connection.ready["hostname"]
            names[name] += 1
            found[old] = Host(f"{name}/{names[name]}" if names[name] > 1 else name)
            connection.host = found[old]
            machine = connection.ready["machine"] or old
            self.job.machines[found[old]] = first.setdefault(machine, found[old])
            self.record.host(found[old], **{k: connection.ready[k] for k in ("hostname", "python")})
        self.job.rename(found)
        self.by_host = {connection.host: connection for connection in self.all()}

    def give_back(self):
        """Let go of the hosts that were asked for."""
        if self.logins.asked:
            came = all(c.ready and c.popen.poll() is not None for c in self.all())
            self.logins.asked.end(gently=came and self.are_closed())

    def leave(self):
        """Tell every supervisor to end what it has started, and itself."""
        for host in self.logins.due:  # dropped, and not tried again
            self.by_host[host].closed = True
        self.order("leave")

    def are_closed(self):
        """Return whether every supervisor has left."""
        return all(connection.closed for connection in self.all())

    def have_left(self):
        """Return whether all supervisors have left; a login may keep its connection open."""
        now = self.world.monotonic()
        return all(c.closed or now - self.done.get(c, now) > LINGER_S for c in self.all())

    # Silence

    def forgive_silence(self):
        """Start to count the silence again: it was the launcher that did not listen."""
        for connection in self.all():
            connection.heard()

    def lose_silent(self):
        """End the connections to hosts that are silent for too long."""
        for connection in self.all():
            if connection.silent_s() > SILENCE_S and not connection.closed:
                connection.kill()
                why = f"{connection.host}: not heard of for {SILENCE_S} s"
                self.outcome.fail(why, UNREACHABLE, kind="away")

    # Reports

    def take_ready(self, connection, **facts):
        """A supervisor runs, and tells of its host."""
        connection.ready = facts
        if not self.logins.asked:  # else it gets another name
            self.record.host(connection.host, **{k: facts[k] for k in ("hostname", "python")})

    def take_said(self, connection, text):
        """A line of ssh, or of another program between here and the supervisor."""
        if connection.ready and not self.outcome.is_over:  # before: a greeting, or the cause
            self.console.say(f"{connection.host}: {text}")

    def take_asked(self, connection, number):
        """The batch system wants the host back."""
        self.outcome.is_asked = True
        message = f"{connection.host}: the batch system sent {signal.Signals(number).name}"
        self.outcome.fail(message, 128 + number, kind="asked")

    def take_done(self, connection):
        """A supervisor has ended all that it started, and ends itself."""
        self.done[connection] = self.world.monotonic()

    def take_leaving(self, connection, why):
        """A supervisor ends: a failure, unless the launcher told it to."""
        if why != "it was told to":
            self.outcome.fail(*self.job.way.left(connection.host, why))

    def take_closed(self, connection, status):
        """A connection has ended; a dropped login is tried again, any other end is a failure."""
        if connection in self.retired:
            return
        if not self.outcome.failure and self.logins.postpone(connection):
            return
        connection.closed = True
        status = shell_status(status)
        is_lost = connection.ready or connection.given_up  # whatever its program ends with
        if is_lost or status <= 1:  # srun, mpirun: 1
            status = UNREACHABLE
        self.outcome.fail(connection.why_closed(), status, kind="away")
