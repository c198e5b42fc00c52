"""Start processes on this host, follow what they do, and find everything they forked.

Goes to every host together with `supervisor.py`: standard library only, Python 3.6 or later.

Each process gets a session of its own, and a mark in its environment: LAUNCH_MARK_… with a number
that each try draws anew. What it forks inherits both, and is found by either one. A daemon leaves
the session but keeps the mark; a program that overwrites its environment (to set its title) loses
the mark but stays in the session.
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

HUNG_S = 10  # a process that has neither written nor computed for so long rests
LOOK_S = 5  # between two looks at a process that is silent
MAX_LINE = 1 << 16  # characters; a longer line is cut
PART_S = 1  # text that waits so long for the end of its line is passed on without it
# PORT: MXNet would listen there. Of a job inside a job: a process of the inner one is its own.
NOT_INHERITED = ("PORT", "LAUNCH_PREPARED")
SHELLS = ("sh", "bash", "dash", "ash", "ksh", "zsh", "busybox")


def scan():
    """Yield (pid, parent, session, name, CPU ticks) of every process; nothing without /proc."""
    for pid in os.listdir("/proc") if os.path.isdir("/proc/self") else []:
        try:
            with open(f"/proc/{int(pid)}/stat", "rb") as file:
                head, _, tail = file.read().rpartition(b")")
        except (OSError, ValueError):
            continue  # not a process, or gone
        fields = tail.split()
        if fields and fields[0] not in b"ZX":  # neither zombie nor dead
            name = head.partition(b"(")[2].decode("utf-8", "replace")
            ticks = int(fields[11]) + int(fields[12])
            yield int(pid), int(fields[1]), int(fields[3]), name, ticks


def family(mark, sessions):
    """Every living process of these sessions or with this mark, by pid, except the caller.

    The mark is the beginning of an entry in the environment, as bytes.
    """
    found = {}
    for entry in scan():
        pid, _, session = entry[:3]
        try:
            if session not in sessions:
                with open(f"/proc/{pid}/environ", "rb") as file:
                    if b"\0" + mark not in b"\0" + file.read():
                        continue
            found[pid] = entry
        except OSError:
            continue  # gone, or somebody else's
    found.pop(os.getpid(), None)
    return found


def send_signal(number, pids, kill=os.kill):
    """Signal processes (or groups), some of which may be gone."""
    for pid in pids:
        try:
            kill(pid, number)
        except OSError:
            pass


def catches(pid, number):
    """Does a process have a handler for this signal?"""
    return _signals(pid, "SigCgt") >> (number - 1) & 1


def is_in_exit(pid):
    """Is this a Python that has begun to tear down its modules?

    Just before, it drops its handler of SIGINT; those of PYTHONFAULTHANDLER stay until the end.
    """
    ignored = _signals(pid, "SigIgn") >> (signal.SIGINT - 1) & 1
    return catches(pid, signal.SIGSEGV) and not catches(pid, signal.SIGINT) and not ignored


def _signals(pid, kind):
    """The signals that a process catches (SigCgt) or ignores (SigIgn), a bit each."""
    try:
        with open(f"/proc/{pid}/status", encoding="utf-8") as file:
            found = re.search(rf"^{kind}:\s*(\w+)", file.read(), re.MULTILINE)
        return int(found.group(1), 16) if found else 0
    except OSError:
        return 0


def kill_family(mark, sessions):
    """KILL these processes and return them. Repeat it until none is left: one may have forked."""
    send_signal(signal.SIGKILL, sessions, os.killpg)
    living = family(mark, sessions)
    send_signal(signal.SIGKILL, living)
    return living


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
    """The exit status for a start that failed: 127 and 126 as a shell has them, else 1."""
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
    """One process of the job.

    Attributes
    ----------
    status : int or None
        Of the process that was started, once it has ended: -n for signal n.
    deadline : float or None
        When to KILL what is left of it; once it has ended, when to stop waiting for its output.
    rests : str
        "waits" or "in its exit" if it has neither written nor computed for a while, else "".
    """

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
        self.status = self.deadline = self.told = None
        self.claim = None  # a file that is there once MXNet was made ready in it
        self.traceback_at = None  # when it began to print a traceback, perhaps an uncaught one
        self.previous = ""
        self.idle_since = self.looked = time.monotonic()
        self.ticks = 0
        self.rests = ""

    def family(self):
        """Its living processes: the one that was started, and what that forked."""
        return family(self.mark, (self.pid,))

    def signal(self, number):
        """Signal the program itself, not the shells above it that only wait for it.

        A shell without a trap ends on TERM at once, while the program below may still be saving.
        The program's own children, such as data loaders, are not signalled.

        Returns
        -------
        list of int
            Who was signalled.
        """
        living = self.family()
        if not living:  # no /proc to tell who is who
            send_signal(number, [self.pid], os.killpg)
        reached, layer = [], [self.pid] if living else []
        while layer:
            below = []
            for pid in layer:
                forked = [other for other, entry in living.items() if entry[1] == pid]
                shell = pid in living and living[pid][3] in SHELLS
                if not (shell and forked) or catches(pid, number):
                    reached.append(pid)
                if shell:
                    below += forked
            layer = below
        send_signal(number, reached)
        return reached

    def stop(self, deadline):
        """TERM now, KILL after the deadline."""
        if self.deadline is None:
            self.told = self.signal(signal.SIGTERM)
            self.looked = time.monotonic()
        self.deadline = min(self.deadline or deadline, deadline)

    def insist(self, now):
        """End a shell, too, that goes on with its next command after a program was stopped.

        First let it end by itself, with the status of that command: the first thread of a program
        may be dead for a while before the program is, and the shell hears of it only then.
        """
        if self.told is None or now - self.looked <= 0.5:
            return
        self.looked = now
        if self.told:
            self.told = [pid for pid in self.told if os.path.exists(f"/proc/{pid}")]
        else:
            send_signal(signal.SIGTERM, self.family())

    def note_line(self, text, now):
        """Note when a traceback began. If nothing follows it, the exception was not caught."""
        if text.endswith("Traceback (most recent call last):"):  # a progress bar may stand before
            # after "Exception in thread …" or "Exception ignored in …" the program goes on
            self.traceback_at = None if self.previous.startswith("Exception ") else now
        elif self.traceback_at and now - self.traceback_at > 2:  # its message may have many lines
            self.traceback_at = None
        self.previous = text

    def look(self, now):
        """Look from time to time whether it rests; True if that has changed.

        It is looked at only when it is silent: to find what it forked takes a while.
        """
        pause = 1 if self.traceback_at else LOOK_S
        silent_s = now - self.idle_since
        if now - self.looked < pause or not (self.traceback_at or self.rests or silent_s > LOOK_S):
            return False
        living, before = self.family(), self.rests
        ticks = sum(entry[4] for entry in living.values())
        if abs(ticks - self.ticks) > 3 * (now - self.looked):  # waiting threads tick now and then
            self.idle_since = now
        self.looked, self.ticks, self.rests = now, ticks, ""
        if now - self.idle_since > HUNG_S:
            self.rests = "in its exit" if any(map(is_in_exit, living)) else "waits"
        return self.rests != before

    def hung(self):
        """Does it rest in its exit, after a traceback?"""
        return self.traceback_at is not None and self.rests == "in its exit"
