"""Print the lines of all processes, each with the name of the process that wrote it."""

import argparse
import os
import re
import signal
import sys
import time

ROLES = ("scheduler", "server", "worker")
BLOCKED_S = 1  # nobody reads a line that takes longer to write
REDRAW_S = 1  # a line that ends in \r (a progress bar) is shown at most this often


def parse_show(text):
    """Read `--show`: `worker:0,server:*`; a role alone means all of it.

    Returns
    -------
    callable
        Tells whether a process is to be shown.

    Raises
    ------
    argparse.ArgumentTypeError
    """
    wanted = set()
    for item in text.split(","):
        match = re.fullmatch(r"(\w+)(?::(\*|[0-9]+))?", item.strip())
        if not match or match[1] not in ROLES:
            raise argparse.ArgumentTypeError(
                f"{item!r} is not like worker:0, server:* or scheduler"
            )
        wanted.add((match[1], match[2] if match[2] not in (None, "*") else None))
    return lambda p: (p.role, None) in wanted or (p.role, str(p.rank)) in wanted


class Blocked(OSError):
    """A line could not be written as nobody reads, and a signal asks the job to end."""


class Console:
    """Prints lines of processes and of the launcher itself.

    Standard output stays standard output, and standard error stays standard error. A closed one is
    a request to stop. If the disk under one is full, the job goes on without it.
    """

    def __init__(self, requests, timestamps=False, show=None, mask=str, several_hosts=False):
        self.requests = requests
        self.timestamps, self.mask, self.several_hosts = timestamps, mask, several_hosts
        self.closed = set()
        self.shown = show or (lambda process: True)
        self._drawn = {}  # when a progress bar of a process was last shown
        self._writing_since = None  # time.monotonic()

    def line(self, process, stream, text, end="\n"):
        """Show a line of a process; `end` is what it ended with there."""
        if not self.shown(process):
            return
        if end == "\r":
            now = time.monotonic()
            if not text or now - self._drawn.get(process.name, -REDRAW_S) < REDRAW_S:
                return
            self._drawn[process.name] = now
        where = f" {process.host}" if self.several_hosts else ""
        self._print(f"{process}{where}", text, sys.stderr if stream == "err" else sys.stdout)

    def say(self, text):
        """Show lines of the launcher itself."""
        for line in text.splitlines():
            self._print("launch", line, sys.stderr)

    def unblock(self):
        """End a write that nobody reads; for the handlers of signals that ask for the end."""
        since = self._writing_since
        if since is not None and time.monotonic() - since > BLOCKED_S:
            raise Blocked

    def _print(self, who, text, file):
        clock = time.strftime("%H:%M:%S ") if self.timestamps else ""
        line = f"{clock}[{who}] {self.mask(text)}\n"
        encoding = file.encoding or "utf-8"
        if file in self.closed:
            return
        self._writing_since = time.monotonic()
        try:
            file.write(line.encode(encoding, "backslashreplace").decode(encoding))
            file.flush()
        except OSError as error:
            self._writing_since = None
            self.closed.add(file)
            if isinstance(error, BrokenPipeError):  # `| head` has seen enough
                self.requests.append(signal.SIGPIPE)
            elif not isinstance(error, Blocked):
                self.say(f"standard output: {error.strerror}: nothing more is shown")
            os.dup2(os.open(os.devnull, os.O_WRONLY), file.fileno())  # for what is buffered
        self._writing_since = None
