"""The rows at the bottom of a terminal, above which everything else scrolls.

They are erased before anything is written and drawn again after it, in one write: nothing is set in
the terminal that would stay there if the launcher is killed.
"""

import os
import stat

from gluon_launch.telling.colour import is_terminal
from gluon_launch.telling.columns import width

ERASE = "\x1b[J"  # from here to the end of the screen
UP = "\x1b[A"
DRAWN_S = 0.2  # between two drawings, if nothing is written
SIGNS = ("━", "╌", "·")
PLAIN_SIGNS = ("=", "-", "|")


def can_be_drawn(out, err, environ):
    """Return whether standard error is a terminal on which only the launcher writes.

    Standard output may be the same one, or a file; behind a pipe somebody else may write to it.
    """
    if not is_terminal(err, environ):
        return False
    try:
        found = os.fstat(out.fileno())
        same = os.path.sameopenfile(out.fileno(), err.fileno())
    except (OSError, ValueError):
        return False
    return same or stat.S_ISREG(found.st_mode) or found.st_rdev == os.stat(os.devnull).st_rdev


class Bottom:
    """What is drawn at the bottom of a terminal.

    Parameters
    ----------
    file : file
        The terminal.
    rows : callable
        Takes signs and a number of columns, see :meth:`Progress.rows`; returns lines of text.
    """

    def __init__(self, file, rows):
        self.file, self._rows = file, rows
        self._drawn = []  # how long each row is that is there now
        self._is_open = True
        try:
            "".join(SIGNS).encode(file.encoding or "ascii")
            self._signs = SIGNS
        except (UnicodeError, LookupError):
            self._signs = PLAIN_SIGNS

    def erased(self):
        """Return the text that erases what is there."""
        if not self._drawn:
            return ""
        columns = self.columns()
        # A terminal that has become narrower has broken rows into several.
        height = sum(max(1, -(-length // columns)) for length in self._drawn)
        self._drawn = []
        return "\r" + UP * (height - 1) + ERASE

    def drawn(self):
        """Return the text that draws the rows, cut to the size of the terminal."""
        if not self._is_open:
            return ""
        size = self._size()
        rows = self._rows(self._signs, size.columns - 1)[: max(1, size.lines - 2)]
        rows = ["".join(c if c.isprintable() else " " for c in row) for row in rows]
        rows = [_cut(row, size.columns - 1) for row in rows]
        self._drawn = [*map(width, rows)]
        return "\n".join(rows)

    def columns(self):
        """Return how wide the terminal is now."""
        return self._size().columns

    def close(self):
        """Draw nothing from now on."""
        self._is_open = False

    def _size(self):
        try:
            size = os.get_terminal_size(self.file.fileno())
        except (OSError, ValueError):
            size = os.terminal_size((0, 0))
        return size if size.columns and size.lines else os.terminal_size((80, 24))


def _cut(text, columns):
    """Return the beginning of a text that fits."""
    while width(text) > columns:
        text = text[: columns if len(text) > columns else -1]
    return text
