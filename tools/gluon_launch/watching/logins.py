"""Log in to the hosts, and again where a busy server dropped a login."""

import collections
import random

from gluon_launch.job.statuses import TIMED_OUT
from gluon_launch.watching.outcome import Failure

LOGIN_S = 30  # for all logins, slow ones included; a program such as ssh gives up sooner
MOST_LOGINS = 6  # to one host


class Logins:
    """The logins of one try.

    An ssh server that has too many logins at once (ten by default) drops some at random: those are
    tried again a little later.
    """

    def __init__(self, job, world, events):
        self.job, self.world, self.events = job, world, events
        self.tries = collections.Counter()  # by host
        self.due = {}  # by host: when to try it again
        self.end = world.monotonic() + LOGIN_S
        self.asked = None  # what brings the hosts: see `Way.ask_for_hosts`

    def open(self, host):
        """Log in to a host; return the Connection."""
        self.tries[host] += 1
        program = self.job.way.name
        try:
            argv, env = self.job.way.supervisor(host, self.job)
            program = argv[0]
            files = [self.asked.files] if self.asked else []
            return self.world.connect(host, self.job.way, argv, self.events, env, *files)
        except OSError as error:
            raise Failure(self.job.way.why_not(error.filename or program, error)) from None
        except RuntimeError as error:  # its threads cannot be started
            raise Failure(f"{program}: {error}") from None

    def ask(self, say):
        """Ask for the hosts, where they come by themselves."""
        try:
            self.asked = self.job.way.ask_for_hosts(self.job, say)
        except OSError as error:
            program = error.filename or self.job.way.name
            raise Failure(self.job.way.why_not(program, error)) from None

    def postpone(self, connection):
        """Plan the next try if the server dropped this one; False if there will be none."""
        due = self.world.monotonic() + random.uniform(1, 3)
        may_try = self.tries[connection.host] < MOST_LOGINS and due < self.end
        if not connection.was_dropped() or not may_try:
            return False
        self.due[connection.host] = due
        return True

    def take_due(self):
        """Return the hosts whose next try has come."""
        now = self.world.monotonic()
        hosts = [host for host, due in self.due.items() if now > due]
        for host in hosts:
            del self.due[host]
        return hosts

    def give_up_slow(self, connections):
        """End the logins that are not done in time."""
        if self.asked:
            self.look()
        elif self.world.monotonic() > self.end:
            for connection in connections:
                if not (connection.ready or connection.closed):
                    connection.give_up(f"no answer within {LOGIN_S} s")

    def look(self):
        """Raise a `Failure` if the hosts that were asked for will not come."""
        trouble = self.asked.trouble()
        if trouble:
            raise Failure(*trouble, kind="away")
        limit = self.job.options.start_timeout
        if limit and self.world.monotonic() - self.end + LOGIN_S > limit:
            why = f"not all containers have come in {limit:g} s (--start-timeout)"
            raise Failure(why, TIMED_OUT)
