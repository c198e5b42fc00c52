"""What a watch has around it: time, hosts, copies. A test hands in a world of its own."""

import queue
import socket
import time

from gluon_launch.starting.rsync import Copy
from gluon_launch.watching.connection import Connection


class World:
    """The real world."""

    connect, copy = Connection, Copy

    def monotonic(self):
        """Return the seconds of a clock that nobody sets."""
        return time.monotonic()

    def time(self):
        """Return the seconds since 1970."""
        return time.time()

    def sleep(self, seconds):
        """Do nothing for a while."""
        time.sleep(seconds)

    def addresses(self, name):
        """Return the addresses of a host; none if it is not known here."""
        try:
            return sorted({found[4][0] for found in socket.getaddrinfo(name, None)})
        except (OSError, UnicodeError):
            return []

    def events(self):
        """Return a queue that the connections of a try fill with `(connection, report)`."""
        return queue.Queue(maxsize=1000)
