"""What a process wrote last, and what it wrote before that may be the cause of its end."""

import collections
import re

from gluon_launch.telling.stacks import Stacks

MOST = 20  # lines that are shown
CAUSES = 4  # of them at most, if they are not among the last
LONGEST = 1 << 16  # characters of a line that are kept
RECENT = 200  # lines worth reading: what was written before them is no cause
NEAR = 5  # lines at the end, among which an error is why it ended
SIGNALS = 128  # statuses above it, and negative ones, are of signals
FRAMES = 8  # of the thread that crashed; most recent call first
OTHERS = 3  # of another thread
_CAUSE = re.compile(
    r"what\(\):|Check failed|Fatal Python error|^Exception ignored |^[\w.]+(Error|Exception)(: |$)"
)
# What a machine has run out of. The process that says so may be a child, which nobody waits for.
_LACK = re.compile(
    r"(?i)\bbus error|no space left on device|out of memory|cannot allocate memory|\bmemoryerror\b"
    r"|\bbad_alloc\b|^killed$| \d+ killed "
)
_TRACEBACK = re.compile(r"Traceback \(most recent call last\):$")
_FRAME = re.compile(r'  File "(?P<folder>.*/)?(?P<name>[^/]+\.py)", line (?P<line>\d+)')
_LIBRARY = re.compile(r"/(site-packages|dist-packages|python3\.\d+|gluon_dist)/")


class LastWords:
    """Takes the lines of a process; keeps those that are worth showing when it fails."""

    def __init__(self):
        self._stacks = {"out": Stacks(), "err": Stacks()}
        self._all = collections.deque(maxlen=MOST)  # (number, line)
        self._errors = collections.deque(maxlen=MOST)
        self._causes = collections.deque(maxlen=CAUSES)
        self._lack = None  # (number, line)
        self._count = 0
        self._begun = {"out": "", "err": ""}  # of a line that has no end yet
        self._redrawn = None  # the stream whose last line is drawn over by its next one
        self._traceback = None  # the stream on which one has begun
        self._place = False, ""  # of its last frame, one of the program's own if there is one
        self._raised = None  # the number of the line that ended it

    def take(self, stream, text, end="\n"):
        """Take a line of "out" or "err"; `end` is how it ended, "" if this is only a part of it.

        Returns what is worth reading now: see `Stacks.take`.
        """
        begun = self._begun[stream]
        line = (begun + text)[-LONGEST:]
        self._begun[stream] = "" if end else line
        if not end:
            if line.strip():
                self._keep(stream, line, end)
            return [text]
        readable = self._take_line(stream, line, end)
        return [text] if begun else readable

    def _take_line(self, stream, line, end):
        """Take a whole line."""
        stacks = self._stacks[stream]
        before = self._errors if stream == "err" else self._all
        if line.startswith("Fatal Python error") and before:
            self._causes.append(before[-1])  # a failed assertion, what malloc found
        readable = stacks.take(line)
        for text in readable:
            if text.strip() and stacks.depth <= (FRAMES if stacks.is_current else OTHERS):
                self._keep(stream, text, end)
        return readable

    def _keep(self, stream, text, end):
        """Keep a line that is worth showing, and note what may be a cause."""
        self._count += 1
        for kept in (self._all, self._errors) if stream == "err" else (self._all,):
            if self._redrawn == stream and kept:
                kept.pop()
            kept.append((self._count, text))
        self._redrawn = stream if end in ("\r", "") else None
        if not end:
            return
        if _LACK.search(text):
            self._lack = self._count, text
        is_error = self._traceback == stream and not text[0].isspace()  # of any class
        if self._traceback == stream:
            self._take_frame(_FRAME.match(text))
        if _TRACEBACK.search(text):
            if not is_error:  # else one of C++, within the error
                self._place = False, ""
            self._traceback = stream
        elif is_error:
            self._traceback = None
        if is_error:
            self._raised = self._count
        if is_error or _CAUSE.search(text):
            self._causes.append((self._count, text))

    def _take_frame(self, frame):
        """Note where a frame of a traceback is, unless it is a library's below the program's."""
        is_own = bool(frame) and not _LIBRARY.search(frame["folder"] or "")
        if frame and is_own >= self._place[0]:
            self._place = is_own, f"{frame['name']}:{frame['line']}"

    def lack(self):
        """Return the line that tells what the machine has run out of; None if none came lately."""
        number, line = self._lack or (-RECENT, None)
        return line if number > self._count - RECENT else None

    def cause(self, status):
        """Return the line that tells why the process ended with a status; "" if none does.

        With it comes where that was raised, such as `train.py:7`, or "". A process that a signal
        ended does not know of it: its last line is about something else.
        """
        if self._causes and self._causes[-1][0] > self._count - NEAR:
            number, line = self._causes[-1]
            return line.strip(), self._place[1] if number == self._raised else ""
        is_error = bool(self._errors) and self._errors[-1] == self._all[-1]
        line = self._errors[-1][1].strip() if is_error and 0 < status < SIGNALS else ""
        return ("" if "warning" in line.lower() else line), ""

    def last(self, count):
        """Return the last lines, the newest first."""
        return [text.strip() for _, text in reversed(self._all)][:count]

    def worth_showing(self):
        """Return the lines, and whether all of them are of standard error.

        Both outputs count if the last line was none of standard error: `2>&1`, or a message that
        was printed.
        """
        is_error = bool(self._errors) and self._errors[-1] == self._all[-1]
        last = list(self._errors if is_error else self._all)
        begin = last[0][0] if last else 0
        recent = self._count - RECENT
        causes = [text for number, text in self._causes if recent < number < begin]
        lines = [text for _, text in last]
        if causes:
            causes = list(dict.fromkeys(causes))
            lines = [*causes, "…", *lines[len(causes) + 1 :]]
        return lines, is_error
