"""Log in to the hosts, and again where a busy server dropped a login."""

import collections
import random
import time

from launcher.starting import ssh
from launcher.watching.connection import Connection
from launcher.watching.watch import Failure

LOGIN_S = ssh.CONNECT_S + 20  # for all logins, slow ones included
MOST_LOGINS = 6  # to one host


class Logins:
    """The logins of one attempt.

    An ssh server that has too many logins at once (ten by default) drops some at random: those are
    tried again a little later.

    Parameters
    ----------
    job : Job
    events : queue.Queue
        For the connections.
    """

    def __init__(self, job, events):
        self.job, self.events = job, events
        self.tries = collections.Counter()  # by host
        self.due = {}  # by host: when to try it again
        self.end = time.monotonic() + LOGIN_S

    def open(self, host):
        """Log in to a host; returns the Connection."""
        self.tries[host] += 1
        program = self.job.way.name
        try:
            argv, env = self.job.way.supervisor(host, self.job)
            program = argv[0]
            return Connection(host, argv, self.events, env)
        except OSError as error:
            raise Failure(self.job.way.why_not(error.filename or program, error)) from None

    def postpone(self, connection):
        """Plan the next try if the server dropped this one; False if there will be none."""
        due = time.monotonic() + random.uniform(1, 3)
        may_try = self.tries[connection.host] < MOST_LOGINS and due < self.end
        if not connection.was_dropped() or not may_try:
            return False
        self.due[connection.host] = due
        return True

    def take_due(self):
        """The hosts whose next try has come."""
        now = time.monotonic()
        hosts = [host for host, due in self.due.items() if now > due]
        for host in hosts:
            del self.due[host]
        return hosts

    def give_up_slow(self, connections):
        """End the logins that are not done in time."""
        if time.monotonic() > self.end:
            for connection in connections:
                if not (connection.ready or connection.closed):
                    connection.give_up(f"no answer within {LOGIN_S} s")
