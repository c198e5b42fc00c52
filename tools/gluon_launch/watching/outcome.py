"""How a try ends: the first thing that goes wrong is the cause."""

from gluon_launch.job.statuses import USAGE


class Failure(Exception):
    """Why a job ends: the status that the launcher exits with, the process that failed, if any.

    The kind is "failed", "asked" (by a signal), "again" (the start did not work out, and is
    repeated), "away" (a host cannot be reached), or "hanging" (the stacks are to be printed).
    """

    def __init__(self, message, status=USAGE, member=None, kind="failed"):
        super().__init__(message)
        self.status, self.member, self.kind = status, member, kind

    def subject(self):
        """Return the failure in one line."""
        if self.member:
            return f"{self.member.process} on {self.member.process.host}: {self}"
        return str(self).partition("\n")[0]


class Outcome:
    """What is known of the end of a try."""

    def __init__(self, world):
        self.world = world
        self.failure = None  # the first one: what follows from it is no cause
        self.failed_at = None  # on the clock of the world
        self.is_asked = False  # somebody asked for the end: nothing is started again
        self.is_done = False  # all workers have ended with 0: nothing can fail any more
        self.is_over = False  # the supervisors were told to leave: their end is no failure

    def fail(self, message, status, member=None, kind="failed", late=False):
        """Note a failure, unless there is one already or nothing can fail any more.

        With `late` it counts also when all workers have ended with 0: their result is wrong.
        """
        if not (self.failure or (self.is_done and not late) or self.is_over):
            self.failure = Failure(message, status, member, kind)
            self.failed_at = self.world.monotonic()

    def raise_failure(self):
        """End the try if something has failed."""
        if self.failure:
            raise self.failure
