"""The time limits of the command line: of the start, of silence, of the whole job."""

from gluon_launch.job.statuses import TIMED_OUT
from gluon_launch.telling.hints import MAY_BE_APART

APART_S = 300  # in which a worker has made its store, if it makes one


class Limits:
    """Ends a try when a limit is over. Times are on the clock of the world."""

    def __init__(self, session, outcome, registration, members):
        self.job = session.job
        self.outcome, self.registration, self.members = outcome, registration, members
        self.running_since = None  # when the processes were started
        self.bound_at = None  # when the scheduler began to listen
        self.phase = ""  # what is being done before the processes run, and with which hosts
        self.last_output = session.world.monotonic()  # when one wrote last, or had to wait for that
        self.was_told_apart = False

    def check(self, now):
        """Note a failure if a limit is over."""
        options = self.job.options
        if options.timeout and now - self.job.began > options.timeout:
            self.outcome.is_asked = True  # by the command line
            phase = ""
            if self.running_since is None:  # a host that is away, which would be waited for
                self.outcome.failure = None
                phase = f": {self.phase}" if self.phase else ""
            self._fail(f"--timeout: not done after {options.timeout:g} s{phase}")
        if self.running_since is None:
            return
        if now - self.running_since > APART_S and not self.was_told_apart:
            self.was_told_apart = True
            if self.job.count("worker") > 1 and not self.registration.has_workers():
                self.members.console.say(MAY_BE_APART.format(APART_S / 60))
        limit = options.stall_timeout
        if limit and now - self.last_output > limit:
            self._fail(f"--stall-timeout: no output from any process for {limit:g} s")
        limit = options.start_timeout
        if self.bound_at is None or self.registration.complete or not limit:
            return
        if now - self.bound_at > limit and not self._may_run_apart():
            arrived = self.registration.arrived
            late = ", ".join(str(p) for p in self.job.processes[1:] if p.name not in arrived)
            self._fail(f"--start-timeout: after {limit:g} s still waiting for {late}")

    def _may_run_apart(self):
        """Return whether no worker waits for others: none has made a store, some are at work."""
        workers = self.members.living("worker")
        are_stuck = bool(workers) and all(member.idle for member in workers)
        return not self.registration.has_workers() and not are_stuck

    def _fail(self, message):
        message = "\n".join(filter(None, [message, self.members.standstill]))
        self.outcome.fail(message, TIMED_OUT, kind="hanging")
