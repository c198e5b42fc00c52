"""The processes of one try, and what is reported of them."""

import re
from dataclasses import dataclass, field
from typing import Optional

from gluon_launch.job.job import Process
from gluon_launch.job.masking import mask_words
from gluon_launch.job.statuses import counted, describe, shell_status
from gluon_launch.remote.protocol import HUNG_S
from gluon_launch.telling.last_words import LastWords
from gluon_launch.telling.report import shortened
from gluon_launch.telling.stacks import MODULES
from gluon_launch.watching.connection import Connection

# Words of Python. A server has two such functions: for what workers ask, and for updates.
UNRAISABLE = re.compile(r"Exception ignored (?:on|while) calling ctypes callback(.*controller)?")
TAKEN = re.compile("bind failed|Address already in use")  # by ps-lite, by Horovod's rendezvous
UNDONE = "could not do what a worker asked for"
NOT_UPDATED = "an update failed"
IGNORED = "{}: {} failed, and the job went on as MXNet does; the first: {}"
STANDSTILL = """\
{ended} came to the end of the program, and {others} stands still: it waits for a push
that does not come. All workers must take the same number of steps{}.
Ctrl-C or --stall-timeout S ends such a job"""
ALL_IDLE = """\
all workers stand still: for a while none has written or computed anything. If each waits for others
(unequal steps, keys or barriers), this lasts for ever: --stall-timeout S ends such a job, and shows
where each one waits"""
NO_SCHEDULER = """\
the scheduler ended with status 0 before a worker had come: a worker that makes a dist store waits
for it for ever. The program must import mxnet in the scheduler and the servers, too"""
LEFT = """\
{}: its command came to its end while this still ran, which was ended with it: {}
The job lasts as long as the command: leave out `&`, nohup and setsid, or end it with `wait`"""
PLAIN = """.
If they did, the last pushes were not sent: leave out --no-prepare, or write mx.nd.waitall() as the
last line"""


@dataclass
class Member:
    """A process of the job, and how it ran."""

    process: Process
    connection: Connection
    pid: Optional[int] = None
    started: Optional[float] = None  # in seconds since 1970
    ended: Optional[float] = None
    status: Optional[int] = None  # -n for signal n
    is_stopping: bool = False  # the launcher asked it to end
    said: LastWords = field(default_factory=LastWords)
    idle: str = ""  # "waits" or "in its exit": it has neither written nor computed for a while
    prepared: bool = False  # MXNet was made ready in it
    unraisable: str = ""  # what failed by an exception that Python is printing
    ignored: list = field(default_factory=list)  # such exceptions, where that is wanted


class Members:
    """All processes of a try."""

    def __init__(self, session, outcome, links, registration):
        self.console, self.record, self.world = session.console, session.record, session.world
        self.options = session.job.options
        self.outcome, self.links, self.registration = outcome, links, registration
        self.by_name = {}  # each Member; empty until the processes are started
        self.standstill, self.reported = "", []  # what is so now, and all that was said of it
        self.has_told_left = False
        self.has_spoken = False  # a worker has written something

    def add(self, process, connection):
        """Expect reports of a process."""
        self.by_name[process.name] = Member(process, connection)

    def living(self, role=None):
        """Return those that have not ended."""
        members = self.by_name.values()
        return [m for m in members if m.ended is None and role in (None, m.process.role)]

    def names(self, role=None):
        """Return the names of those that have not ended."""
        return [member.process.name for member in self.living(role)]

    def are_out_of_reach(self, role=None):
        """Return whether none is left on a host that can be reached."""
        return all(member.connection.closed for member in self.living(role))

    def signal(self, number, names):
        """Send a signal to the named processes."""
        self.links.order("signal", number=int(number), names=names)

    def stop(self, grace, names=None):
        """TERM, then KILL after the grace, to the named processes or to all."""
        for member in self.living():
            member.is_stopping = member.is_stopping or names is None or member.process.name in names
        self.console.is_stopping = True
        self.links.order("stop", grace=grace, names=names)

    # Reports

    def take_started(self, connection, name, pid):
        """A process has been started."""
        if name in self.by_name:
            self.by_name[name].pid, self.by_name[name].started = pid, self.world.time()

    def take_line(self, connection, name, stream, text, end):
        """A process wrote a line."""
        member = self.by_name.get(name)
        if member is None:  # a check, whose output is for the launcher
            connection.answers.append(text)
            return
        if text and member.process.role != "worker":
            self.find_unraisable(member, text)
        self.record.line(member.process, text, end)
        readable = member.said.take(stream, text, end)
        if member.process.role == "worker":  # what a worker prints stays as it is
            self.has_spoken = self.has_spoken or bool(text.strip())
            readable = [] if text.startswith(MODULES) else [text]
        for line in readable:
            self.console.line(member.process, stream, line, end)

    def find_unraisable(self, member, text):
        """A server goes on after an exception in a callback, and ruins the weights: end it."""
        found = UNRAISABLE.match(text)
        if found:
            member.unraisable = UNDONE if found[1] else NOT_UPDATED
        elif member.unraisable and not re.match(r"\s|Traceback ", text):
            what, member.unraisable = member.unraisable, ""
            if what == NOT_UPDATED and self.options.ignore_server_errors:
                member.ignored.append(text)
            else:
                self.outcome.fail(f"{what}: {text}", 1, member, late=True)

    def tell_ignored(self):
        """Say how many updates failed on each server, where the job was to go on."""
        for member in self.by_name.values():
            if member.ignored:
                first, count = member.ignored[0], len(member.ignored)
                self.console.say(IGNORED.format(member.process, counted(count, "update"), first))

    def take_hung(self, connection, name):
        """A process hangs in its exit: that is a failure of a worker only."""
        member = self.by_name.get(name)
        if member and member.process.role == "worker":  # others are idle whenever workers compute
            why = f"printed a traceback, and has hung in its exit for {HUNG_S} s"
            self.outcome.fail(why, 1, member)

    def take_prepared(self, connection, name):
        """MXNet was made ready in a process, which has ended."""
        if name in self.by_name:
            self.by_name[name].prepared = True

    def take_left(self, connection, name, commands):
        """A process ended with 0 before what it had started, which was ended: say so once."""
        member = self.by_name.get(name)
        if member and member.process.role == "worker" and not self.has_told_left:
            self.has_told_left = True
            shown = "; ".join(map(shortened, mask_words(commands)))
            self.console.say(LEFT.format(member.process, shown))

    def take_idle(self, connection, name, how):
        """A process neither writes nor computes: say so if all workers do, some at their end."""
        if name not in self.by_name:
            return
        self.by_name[name].idle = how
        workers = [m for m in self.by_name.values() if m.process.role == "worker"]
        at_end = [m for m in workers if m.status == 0 or m.idle == "in its exit"]
        waiting = [m for m in workers if m.ended is None and m.idle == "waits"]
        can_wait = self.registration.has_workers()  # else for a person, or for the time
        self.standstill = ""
        if waiting and not can_wait and self.by_name["scheduler"].status == 0:
            self.standstill = NO_SCHEDULER
        elif at_end and waiting and len(at_end) + len(waiting) == len(workers):
            ended, others = (", ".join(str(m.process) for m in ms) for ms in (at_end, waiting))
            more = PLAIN if self.options.no_prepare else ""
            self.standstill = STANDSTILL.format(more, ended=ended, others=others)
        elif can_wait and len(workers) > 1 and all(m.ended is None and m.idle for m in workers):
            self.standstill = ALL_IDLE
        if self.standstill and self.standstill not in self.reported:  # often told is not read
            self.reported.append(self.standstill)
            self.console.say(self.standstill)

    def take_exit(self, connection, name, status, why=""):
        """A process has ended."""
        member = self.by_name.get(name)
        if member is None:
            connection.answers.append(None)
            return
        member.ended, member.status = self.world.time(), status
        if why:
            member.said.take("err", why)
        if status == 0 or member.is_stopping:
            return
        if not self.living("worker") and member.process.role != "worker":
            self.console.say(f"{member.process} {describe(status)} after all workers had ended")
            return
        words, _ = member.said.worth_showing()
        is_starting = name == "scheduler" and not self.registration.arrived
        is_port_taken = is_starting and TAKEN.search(" ".join(words))
        kind = "again" if is_port_taken else "failed"
        self.outcome.fail(describe(status), shell_status(status), member, kind)
