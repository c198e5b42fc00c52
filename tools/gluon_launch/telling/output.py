"""Print the lines of all processes, each with the name of the process that wrote it."""

import collections
import os
import re
import shutil
import signal
import sys
import time

from gluon_launch.job.job import ROLES
from gluon_launch.telling import colour
from gluon_launch.telling.agreement import AGREE, Agreement
from gluon_launch.telling.bottom import DRAWN_S, Bottom
from gluon_launch.telling.columns import (
    LEAST,
    command_rows,
    kept_together,
    spaced,
    whole_words,
    width,
    wrapped,
)
from gluon_launch.telling.last_words import MOST
from gluon_launch.telling.progress import is_bar
from gluon_launch.telling.writer import Writer

REDRAW_S = 1  # a line that ends in \r (a progress bar) is shown at most this often
GATHER_S = 0.03  # for lines that come together to be written together
HEADLINE = 140  # columns that a cause may have, in several rows if need be
NO_ROWS = 200  # columns of a line where the width of the terminal is not asked for
ABOVE = 12  # lines that are still in sight above the last words of a job
AGREED = re.compile("(.*)" + re.escape(AGREE).replace(r"\{\}", r"\d+"))
STOPPED = re.compile(r"(.*: line \d+: +\d+ )?Terminated\b.*")  # what a shell says of our TERM


def open_streams():
    """Open what was closed (`>&-`): the next file to be opened would get its number.

    What an encoding cannot show is escaped: no locale makes a line an error. Nor does a reader that
    is slow, where whoever shares the output has made it non-blocking.
    """
    number = os.open(os.devnull, os.O_RDWR)
    while number <= 2:
        number = os.dup(number)
    os.close(number)
    for number in (1, 2):
        os.set_blocking(number, True)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
        if hasattr(getattr(sys, name), "reconfigure"):  # not in a notebook
            getattr(sys, name).reconfigure(errors="backslashreplace")


def mistake(text, color="auto"):
    """Return `program: error: …` as it is for standard error: red, and whole words in a row."""
    if colour.is_wanted(color, sys.stderr, os.environ):
        text = text.replace("error:", colour.painted("error:", colour.RED), 1)
    if not colour.is_terminal(sys.stderr, os.environ):
        return text
    columns = shutil.get_terminal_size().columns
    return "\n".join(spaced(wrapped("", kept_together(text.rstrip("\n")), columns))) + "\n"


def _same_file(one, other):
    """Return whether both lead to one place, as on a terminal; True in a notebook (no files)."""
    try:
        return os.path.sameopenfile(one.fileno(), other.fileno())
    except OSError:
        return True


class Console:
    """Prints lines of processes and of the launcher itself, without ever waiting for the screen.

    Standard output stays standard output, and standard error stays standard error. A broken pipe is
    a request to stop. If the disk under one is full, the job goes on without it.

    Parameters
    ----------
    requests : deque
        Of the launcher: a broken pipe is one.
    timestamps : bool
        Put the time in front of every line.
    show : set of (role, rank or None), optional
        Which processes are shown; default: all.
    mask : callable
        Hides secrets in a text.
    several_hosts : bool
        Name the host of each process.
    color : {"auto", "always", "never"}
    progress : Progress, optional
        What is drawn at the bottom of the terminal; default: nothing.
    """

    def __init__(
        self,
        requests,
        timestamps=False,
        show=None,
        mask=str,
        several_hosts=False,
        color="auto",
        progress=None,
    ):
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
        self._coloured = {
            file for file in (sys.stdout, sys.stderr) if colour.is_wanted(color, file, os.environ)
        }
        self.progress = progress
        if progress:
            self.writers[-1].gather_s = GATHER_S
        self.is_stopping = False  # the processes have been asked to end
        self.has_frames = colour.is_terminal(sys.stderr, os.environ)  # somebody looks on
        # What was shown last: each (name of the process, or None: the launcher or several, text).
        self._last = collections.deque(maxlen=MOST + ABOVE)
        self._bottom, self._agreement, self._drawn_at = None, None, 0
        if progress:
            self._bottom = Bottom(sys.stderr, self._rows)
            self._agreement = Agreement(progress.num_workers)

    def line(self, process, stream, text, end="\n"):
        """Show a line of a process; `end` is the line ending that it wrote, "" for a part of one.

        Each part stands on a line of its own: other processes may write before the next.
        """
        if not self.wanted & {(process.role, None), (process.role, process.rank)}:
            return
        if self._is_our_doing(text):
            return
        if self.progress and process.role == "worker":
            if self.is_stopping and end == "\n" and is_bar(text):  # it is over, and was seen
                return
            text = self.progress.take(process.rank, text, end)
            if text is None or self._is_our_doing(text):
                return
            agreed = self._agreement.take(process, stream, text, time.monotonic()) if end else None
            if agreed is not None:
                for each in agreed:
                    self._show(*each)
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
        self._show(process, stream, text)

    def _rows(self, *how):
        """Return the rows at the bottom; while the processes end, no bar says how far they are."""
        rows = self.progress.rows(time.monotonic(), *how)
        return rows[:1] if self.is_stopping else rows

    def _is_our_doing(self, text):
        return self.is_stopping and STOPPED.fullmatch(text)

    def _show(self, process, stream, text):
        where = f" {process.host}" if self.several_hosts else ""
        file, writer = self._out if stream == "out" else self._err
        hue = colour.of_process(process) if file in self._coloured else None
        agreed = self.progress and AGREED.fullmatch(text)
        self._last.append((None, agreed[1]) if agreed else (process.name, text))
        writer.put(self._write, self._format(f"{process}{where}", text, file, hue), file)

    def say(self, text, sign=None):
        """Show lines of the launcher itself; `sign` says how it ends: good, bad or asked."""
        file, writer = self._err
        is_coloured = file in self._coloured
        bold = colour.BOLD if is_coloured else None
        lines = [(line, "", "") for line in text.splitlines()]
        if sign and self.has_frames:
            lines = framed(text.splitlines(), sign, file.encoding, is_coloured)
        for line, mark, following in lines:
            self._last.append((None, line))
            writer.put(self._write, self._format("launch", line, file, bold, mark, following), file)

    def answer(self, text):
        """Show lines of the launcher itself if somebody looks on: they are of the moment."""
        if self.has_frames:
            self.say(text)

    def room(self):
        """Return how many columns a line of the launcher itself may have; None: any number."""
        prefix = self._format("launch", "", self._err[0]).rstrip("\n")
        return self._bottom.columns() - width(prefix) if self._bottom else None

    def cut(self, text, end=""):
        """Return the beginning of a text, with its end: a row of a frame, or some short ones."""
        room = max(self.room() or NO_ROWS, HEADLINE)
        return whole_words(text, max(LEAST, room - 2 - width(end))) + end

    def stand_above(self, process, lines):
        """Return whether lines of a process are still in sight, above what is shown next."""
        if not (lines and self.has_frames):
            return False
        last = [(who in (None, process.name), text) for who, text in list(self._last)]
        return (True, lines[-1]) in last[-ABOVE:] and all((True, line) in last for line in lines)

    def begin_try(self, began, number):
        """Begin the rows at the bottom anew: a try at the job begins, with this number."""
        self.is_stopping = False
        self._begun.clear()
        if self.progress:
            for each in self._agreement.release():
                self._show(*each)
            self.progress.begin(began, number)

    def is_due(self):
        """Return whether it is time to draw the bottom of the terminal anew."""
        return self._bottom and time.monotonic() - self._drawn_at > DRAWN_S

    def draw(self, phase, hosts):
        """Draw it: `phase` is what is done before the processes run, "" while they do."""
        self._drawn_at = now = time.monotonic()
        self.progress.note(phase, [str(host) for host in hosts])
        for each in self._agreement.late(now):
            self._show(*each)
        file, writer = self._err
        if not writer.waiting:
            writer.put(self._write, "", file)

    def end_progress(self):
        """Show what was held back, and draw nothing more at the bottom."""
        if self._bottom:
            for each in self._agreement.release():
                self._show(*each)
            self._bottom.close()
            self._err[1].put(self._write, "", self._err[0])

    def pass_on(self, stream, text):
        """Show whole lines of another launcher, as they are."""
        file, writer = self._out if stream == "out" else self._err
        for line in text.splitlines(keepends=True):
            writer.put(self._write, line, file)

    def command(self, line):
        """Show a command line, to be copied."""
        columns = self._bottom.columns() if self._bottom else NO_ROWS
        self.pass_on("err", "\n".join(command_rows(self.mask(line), columns)) + "\n")

    def _format(self, who, text, file, hue=None, mark="", following=""):
        """Return a line with its writer in front, broken at words where the bottom is drawn."""
        clock = time.strftime("%H:%M:%S ") if self.timestamps else ""
        prefix = f"{clock}{colour.painted(f'[{who}]', hue)} "
        text = self.mask(text)
        if not self._is_drawn_on(file):
            return f"{prefix}{mark}{text}\n"
        columns = self._bottom.columns()
        following = " " * width(prefix) + following
        return "\n".join(wrapped(prefix + mark, text, columns, following)) + "\n"

    def _is_drawn_on(self, file):
        """Return whether the bottom of a terminal is drawn where this leads to."""
        if not self._bottom:
            return False
        return file is self._bottom.file or len(self.writers) == 1

    def _write(self, line, file):
        """Write a line, below which the bottom is drawn again; in the writer's thread."""
        if file in self.closed:
            return
        encoding = file.encoding or "utf-8"
        line = line.encode(encoding, "backslashreplace").decode(encoding)
        if self._is_drawn_on(file):
            line = self._bottom.erased() + line + self.mask(self._bottom.drawn())
        try:
            file.write(line)
            file.flush()
        except OSError as error:
            self.closed.add(file)
            os.dup2(os.open(os.devnull, os.O_WRONLY), file.fileno())  # for what is buffered
            if isinstance(error, BrokenPipeError):  # `| head` has seen enough
                self.requests.append(signal.SIGPIPE)
            else:
                name = "output" if file is self._out[0] else "error"
                self.say(f"standard {name}: {error.strerror}: nothing more is shown")


def framed(lines, sign, encoding, is_coloured):
    """Return lines in a frame: each is (line, mark, mark of further rows), the sign in front."""
    hue = {"good": colour.GREEN, "bad": colour.RED, "asked": colour.YELLOW}[sign]
    hue = hue if is_coloured else None
    signs = {"good": "✓", "bad": "✗", "asked": "■"}[sign], "│", "└"
    try:
        "".join(signs).encode(encoding or "ascii")
    except (UnicodeError, LookupError):
        signs = {"good": "ok", "bad": "!!", "asked": "--"}[sign], "|", "`"
    first, *others = lines or [""]
    sign, bar, corner = (f"{colour.painted(each, hue)} " for each in signs)
    framed_first = colour.painted(first, hue), sign, bar if others else "  "
    framed_others = [(line, bar, bar) for line in others]
    if others:
        framed_others[-1] = others[-1], corner, "  "
    return [framed_first, *framed_others]
