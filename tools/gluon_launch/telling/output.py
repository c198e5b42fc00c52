"""Print the lines of all processes, each with the name of the process that wrote it."""

import os
import signal
import sys
import time

from gluon_launch.job.job import ROLES
from gluon_launch.telling.writer import Writer

REDRAW_S = 1  # a line that ends in \r (a progress bar) is shown at most this often


def open_streams():
    """Open what was closed (`>&-`): the next file to be opened would get its number.

    What an encoding cannot show is escaped: no locale makes a line an error.
    """
    number = os.open(os.devnull, os.O_RDWR)
    while number <= 2:
        number = os.dup(number)
    os.close(number)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
        if hasattr(getattr(sys, name), "reconfigure"):  # not in a notebook
            getattr(sys, name).reconfigure(errors="backslashreplace")


def _same_file(one, other):
    """Do both lead to the same place, as on a terminal? In a notebook they are no files: yes."""
    try:
        return os.path.sameopenfile(one.fileno(), other.fileno())
    except OSError:
        return True


class Console:
    """Prints lines of processes and of the launcher itself, without ever waiting for the screen.

    Standard output stays standard output, and standard error stays standard error. A broken pipe is
    a request to stop. If the disk under one is full, the job goes on without it.
    """

    def __init__(self, requests, timestamps=False, show=None, mask=str, several_hosts=False):
        self.requests = requests
        self.timestamps, self.mask, self.several_hosts = timestamps, mask, several_hosts
        self.closed = set()
        self.wanted = show or {(role, None) for role in ROLES}
        self._begun = set()  # where a part of a line was shown: names of process and stream
        self._drawn = {}  # when a progress bar of a process was last shown
        self.writers = [Writer()]  # one if both lead to one place: it keeps the lines in order
        if not _same_file(sys.stdout, sys.stderr):
            self.writers.append(Writer())
        self._out = sys.stdout, self.writers[0]
        self._err = sys.stderr, self.writers[-1]

    def line(self, process, stream, text, end="\n"):
        """Show a line of a process; `end` is the line ending that it wrote, "" for a part of one.

        Each part stands on a line of its own: other processes may write before the next.
        """
        if not self.wanted & {(process.role, None), (process.role, process.rank)}:
            return
        place = process.name, stream
        was_begun = place in self._begun
        (self._begun.discard if end else self._begun.add)(place)
        if was_begun and not text:
            return
        if end == "\r":
            now = time.monotonic()
            if not text or now - self._drawn.get(process.name, -REDRAW_S) < REDRAW_S:
                return
            self._drawn[process.name] = now
        where = f" {process.host}" if self.several_hosts else ""
        file, writer = self._out if stream == "out" else self._err
        writer.put(self._write, self._format(f"{process}{where}", text), file)

    def say(self, text):
        """Show lines of the launcher itself."""
        for line in text.splitlines():
            file, writer = self._err
            writer.put(self._write, self._format("launch", line), file)

    def pass_on(self, stream, text):
        """Show whole lines of another launcher, as they are."""
        file, writer = self._out if stream == "out" else self._err
        for line in text.splitlines(keepends=True):
            writer.put(self._write, line, file)

    def _format(self, who, text):
        clock = time.strftime("%H:%M:%S ") if self.timestamps else ""
        return f"{clock}[{who}] {self.mask(text)}\n"

    def _write(self, line, file):
        if file in self.closed:
            return
        encoding = file.encoding or "utf-8"
        try:
            file.write(line.encode(encoding, "backslashreplace").decode(encoding))
            file.flush()
        except OSError as error:
            self.closed.add(file)
            os.dup2(os.open(os.devnull, os.O_WRONLY), file.fileno())  # for what is buffered
            if isinstance(error, BrokenPipeError):  # `| head` has seen enough
                self.requests.append(signal.SIGPIPE)
            else:
                name = "output" if file is self._out[0] else "error"
                self.say(f"standard {name}: {error.strerror}: nothing more is shown")
