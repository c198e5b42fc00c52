"""The stacks that Python prints of a process that crashes or hangs: which lines are worth reading.

A server or a scheduler waits below `import mxnet`, a hundred frames deep. Worth reading is only
what differs from that: a call that it was in the middle of.
"""

import re

_ABORTED = re.compile(r"Fatal Python error: Aborted$")  # by SIGABRT, which is told anyway
_THREAD = re.compile(r"(Current thread|Thread) 0x[0-9a-f]+ .*\(most recent call first\):$")
_FRAME = re.compile(r'  File "(.*)", line \d+ in (.*)$')
MODULES = "Extension modules: "  # below the stacks, thousands of characters
_IMPORTS = "<frozen importlib"
# Where a server or the scheduler waits, in MXNet and in gluon_dist.
_SERVES = re.compile(r"/kvstore/kvstore_server\.py:run$|/parameter_server\.py:serve_if_told$")
# Where a thread waits for another one, in Python's own library.
_IDLES = re.compile(
    r"/python3\.\d+/(threading|queue|selectors|concurrent/futures/thread"
    r"|multiprocessing/(connection|queues|synchronize|pool))\.py:"
)


class Stacks:
    """Reads the lines of one output of a process, among which there may be stacks."""

    def __init__(self):
        self.depth = 0  # frames of this thread that were worth reading so far; 0 outside of a stack
        self.is_current = False  # it is the thread that was stopped, or that crashed
        self._held = []  # worth reading if a frame is
        self._place = None  # "begin" or "frames" of a stack, or its "rest", not worth reading

    def take(self, line):
        """Return the lines worth reading: none, this one, or with it those that were held back."""
        thread, frame = _THREAD.match(line), _FRAME.match(line)
        if thread or _ABORTED.match(line):
            self._held = [held for held in self._held if _ABORTED.match(held)] if thread else []
            self._held.append(line)
            self._place, self.depth = "begin", 0
            self.is_current = bool(thread) and thread[1] == "Current thread"
            return []
        if line.startswith(MODULES) or (self._place and line.strip() in ("", "...")):
            return []
        if not (self._place and frame):
            held = self._held if self._place == "begin" else []
            self._held, self._place, self.depth = [], None, 0
            return [*held, line]
        return self._take_frame(line, f"{frame[1]}:{frame[2]}")

    def _take_frame(self, line, where):
        """Return the lines worth reading, as `take` does, of a frame of a stack."""
        is_idle = self._place == "begin" and not self.is_current and _IDLES.search(where)
        if is_idle or _SERVES.search(where):
            self._place = "rest"
        if self._place == "rest" or where.startswith(_IMPORTS):
            return []
        held, self._held = self._held, []
        self._place = "frames"
        self.depth += 1
        return [*held, line]
