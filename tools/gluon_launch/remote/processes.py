"""Start processes on this host, and follow what they do.

Goes to every host together with `supervisor.py`: standard library only, Python 3.6 or later.

Each process gets a session of its own, and a mark in its environment: LAUNCH_MARK_… with a number
that each try draws anew. What it forks inherits both, and is found by either one. A daemon leaves
the session but keeps the mark; a program that overwrites its environment (to set its title) loses
the mark but stays in the session. One that loses both is found by its parents.
"""

import codecs
import errno
import os
import re
import select
import shutil
import signal
import subprocess
import time

from protocol import HUNG_S, KILL_S
from request import Request
from tree import catches, command_line, family, ignores, kill_family, send_signal

LOOK_S = 5  # between two looks at a process that is silent
LEFT_S = 0.5  # for what a process left behind to end by itself
SOON_S = 0.1  # between two looks at it
# Whoever is ended by one of these was asked to end.
ASKS = [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT]
ASKS += [signal.SIGUSR1, signal.SIGUSR2, signal.SIGXCPU]
MAX_LINE = 1 << 16  # characters; a longer line is cut
PART_S = 1  # text that waits so long for the end of its line is passed on without it
# PORT: MXNet would listen there. Of a job inside a job: a process of the inner one is its own.
NOT_INHERITED = ("PORT", "LAUNCH_PREPARED")


def guard(pipe, mark, supervisor, silence_s, folder):
    """Wait until the supervisor ends or falls silent; kill all its processes, remove its folder.

    The pipe brings records of eight bytes: `+` or `-` and the number of a session, or a heartbeat.
    Silence is counted in seconds that this process has waited: not while the machine stood still.
    """
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    sessions, waited_s = set(), 0
    while waited_s < silence_s:
        if not select.select([pipe], [], [], 1)[0]:
            waited_s += 1
            continue
        record, waited_s = os.read(pipe, 8), 0
        if not record:
            break
        if record[:1] in b"+-":
            (sessions.add if record[:1] == b"+" else sessions.discard)(int(record[1:]))
    if os.getppid() == supervisor:
        send_signal(signal.SIGKILL, [supervisor])
    for _ in range(100):
        if not kill_family(mark, sessions):
            break
        time.sleep(0.05)
    if folder:
        shutil.rmtree(folder, ignore_errors=True)


def start_status(error, command, cwd):
    """Return the exit status for a start that failed: 127 and 126 as a shell has them, else 1."""
    if error.filename != command[0]:
        return 1  # no such folder; no more processes, files or memory
    if error.errno == errno.ENOENT and not os.path.exists(os.path.join(cwd or "", command[0])):
        return 127  # not found
    return 126  # found, but neither a program nor a script whose interpreter is there


class Stream:
    """Standard output or error of a process, cut into lines."""

    def __init__(self, child, name, pipe):
        os.set_blocking(pipe.fileno(), False)
        self.child, self.name, self.pipe = child, name, pipe
        self.decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")
        self.text = ""
        self.since = None  # when the text began that waits for the end of its line
        self.is_begun = False  # the beginning of its line was passed on

    def read(self, now):
        """Return the finished lines as (text, how it ended), and whether there can be more."""
        try:
            data = os.read(self.pipe.fileno(), 1 << 16)
        except BlockingIOError:
            return [], True
        self.text += self.decoder.decode(data, final=not data)
        parts = re.split("(\r\n|\n|\r(?!$))", self.text)  # a last \r may be half of a \r\n
        self.text = parts.pop()
        lines = list(zip(parts[::2], parts[1::2]))
        if lines:
            self.since, self.is_begun = None, False
        if len(self.text) > MAX_LINE or (not data and (self.text or self.is_begun)):
            lines.append((self.text, "\n"))
            self.text, self.since, self.is_begun = "", None, False
        elif self.text:
            self.since = self.since or now
        return lines, bool(data)

    def part(self, now):
        """Return the text that has waited too long for the end of its line, "" if none has."""
        if self.since is None or now - self.since <= PART_S:
            return ""
        text = self.text.rstrip("\r")
        self.text, self.since = self.text[len(text) :], None
        self.is_begun = self.is_begun or bool(text)
        return text


class Child:
    """One process of the job, and what it has started."""

    def __init__(self, name, mark, command, env, cwd=None, stdin=""):
        self.name = name
        self.mark = f"{mark}={name}\0".encode()
        inherited = {key: value for key, value in os.environ.items() if key not in NOT_INHERITED}
        self.popen = subprocess.Popen(
            command,
            cwd=cwd,
            env={**inherited, **env, mark: name},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        self.pid = self.popen.pid
        try:
            self.popen.stdin.write(stdin.encode())
            self.popen.stdin.close()
        except BrokenPipeError:
            pass
        self.streams = [
            Stream(self, "out", self.popen.stdout),
            Stream(self, "err", self.popen.stderr),
        ]
        self.status = None  # of the process itself, once it has ended: -n for signal n
        self.deadline = None  # when to KILL it; after its end, to stop waiting for its output
        self.rest_until = None  # after its end: when to KILL what it has left
        self.request, self.is_stopping = None, False  # the last signal; asked to end
        self.grace_s = float(env.get("LAUNCH_GRACE", KILL_S))
        self.living = {}
        self.left = []  # commands that it left behind, though nobody asked it to end
        self.handled, self.noted = set(), 0  # who had a handler of SIGINT, and when
        self.claim = None  # a file that is there once MXNet was made ready in it
        self.traceback_at = None  # when it began to print a traceback, perhaps an uncaught one
        self.previous = ""
        self.idle_since = self.looked = time.monotonic()
        self.ticks = 0
        self.idle = ""  # "waits" or "in its exit": it has neither written nor computed

    def family(self):
        """Return its living processes: the one that was started, and what that forked."""
        return family(self.mark, (self.pid,))

    def ask(self, number):
        """Signal whoever of it can act on that, once."""
        if self.request:
            self.request.release()
        self.request = Request(number, time.monotonic() + self.grace_s)
        living = self.family()
        if living:
            self.request.send(living)
        else:  # no /proc to tell who is who
            send_signal(number, [self.pid], os.killpg)

    def stop(self, deadline):
        """TERM now, KILL after the deadline."""
        if not self.is_stopping:
            self.is_stopping = True
            self.ask(signal.SIGTERM)
        if self.status is None:
            self.deadline = min(self.deadline or deadline, deadline)
        else:
            self.rest_until = min(self.rest_until, deadline)

    def note_end(self, now):
        """Take the end of the process; what it has left has the rest of the grace, or a moment."""
        self.status, self.rest_until = self.popen.returncode, self.deadline or now + LEFT_S
        if -self.status in ASKS and not self.is_stopping:  # somebody else's request, to a script
            self.rest_until = now + self.grace_s
            self.stop(self.rest_until)
        self.deadline = self.rest_until + KILL_S
        self.looked = 0

    def take_orphan(self, pid, status):
        """Note how one of those ended that lost their parents."""
        if self.request and pid in self.request.statuses:
            self.request.statuses[pid] = status

    def final_status(self):
        """Return its own status, or that of the program that was asked to end."""
        return self.request.status(self.status) if self.request else self.status

    def follow(self, now):
        """Go on with a request; after the end, see to what is left, and return that."""
        if self.request:
            self.request.follow()
        if self.status is None:
            if self.deadline and now > self.deadline:
                kill_family(self.mark, (self.pid,))
            elif self.request:
                self.request.insist(now, self.family)
            return self.living
        if now - self.looked < SOON_S:
            return self.living
        self.looked = now
        if now > self.rest_until:
            if self.status == 0 and not self.is_stopping:
                self.left += filter(None, map(command_line, self.living))
            self.living = kill_family(self.mark, (self.pid,))
        else:
            self.living = self.family()
            if self.is_stopping and self.living:
                self.request.send(self.living)
        if not self.living:
            self.deadline = min(self.deadline, now + KILL_S)
        return self.living

    def note_line(self, text, now):
        """Note when a traceback began. If nothing follows it, the exception was not caught."""
        if text.endswith("Traceback (most recent call last):"):  # a progress bar may stand before
            # after "Exception in thread …" or "Exception ignored in …" the program goes on
            self.traceback_at = None if self.previous.startswith("Exception ") else now
            self.note_handlers(now, SOON_S)
        elif self.traceback_at and now - self.traceback_at > 2:  # its message may have many lines
            self.traceback_at = None
        self.previous = text

    def note_handlers(self, now, pause):
        """Note which Pythons handle SIGINT: whoever drops that later has begun to exit."""
        if now - self.noted > pause:
            self.noted = now
            self.handled.update(pid for pid in self.family() if catches(pid, signal.SIGINT))

    def is_in_exit(self, pid):
        """Return whether this is a Python that has begun to tear down its modules.

        A prepared one says so in a file. Others drop their handler of SIGINT just before; those of
        PYTHONFAULTHANDLER stay until the end.
        """
        if self.claim and os.path.exists(f"{self.claim}.{pid}"):
            return True
        has_dropped = pid in self.handled and not catches(pid, signal.SIGINT)
        return has_dropped and catches(pid, signal.SIGSEGV) and not ignores(pid, signal.SIGINT)

    def look(self, now):
        """Look from time to time whether it is idle; True if that has changed.

        It is looked at only when it is silent: to find what it forked takes a while.
        """
        if not self.claim:
            self.note_handlers(now, LOOK_S if self.handled else 1)  # it may be a short program
        pause = 1 if self.traceback_at else LOOK_S
        silent_s = now - self.idle_since
        if now - self.looked < pause or not (self.traceback_at or self.idle or silent_s > LOOK_S):
            return False
        living, before = self.family(), self.idle
        ticks = sum(entry.ticks for entry in living.values())
        if abs(ticks - self.ticks) > 3 * (now - self.looked):  # waiting threads tick now and then
            self.idle_since = now
        self.looked, self.ticks, self.idle = now, ticks, ""
        if now - self.idle_since > HUNG_S:
            self.idle = "in its exit" if any(map(self.is_in_exit, living)) else "waits"
        return self.idle != before

    def hung(self):
        """Return whether it is idle in its exit, after a traceback."""
        return self.traceback_at is not None and self.idle == "in its exit"
