"""A terminal of a size: what a program draws on it, and what is to be seen in the end."""

import codecs
import fcntl
import os
import pty
import re
import signal
import struct
import termios
import time

KNOWN = re.compile(r"\x1b\[(\d*)([AJm])|([\r\n])|([^\x1b\r\n]+)")


class Screen:
    """Understands what the launcher uses: carriage return, new line, up, erase below, colours.

    Parameters
    ----------
    columns : int
    """

    def __init__(self, columns):
        self.columns = columns
        self.rows, self.row, self.column = [""], 0, 0

    def feed(self, text):
        """Take what a program writes; anything else than the above is an error."""
        at = 0
        while at < len(text):
            found = KNOWN.match(text, at)
            assert found, f"unknown: {text[at : at + 20]!r}"
            at = found.end()
            number, command, move, words = found.groups()
            if command == "A":
                self.row -= int(number or 1)
                assert self.row >= 0, "above the first row"
            elif command == "J":
                self.rows = [*self.rows[: self.row], self.rows[self.row][: self.column]]
            elif move == "\r":
                self.column = 0
            elif move == "\n":
                self._down()
            for character in words or "":
                if self.column == self.columns:
                    self.column = 0
                    self._down()
                row = self.rows[self.row].ljust(self.column)
                row = row[: self.column] + character + row[self.column + 1 :]
                self.rows[self.row], self.column = row, self.column + 1

    def _down(self):
        self.row += 1
        self.rows += [""] * (self.row == len(self.rows))

    def text(self):
        """All rows, also those that have scrolled away."""
        return "\n".join(row.rstrip() for row in self.rows).rstrip("\n")


class OnTerminal:
    """A program on a terminal of its own.

    Parameters
    ----------
    argv : sequence
    columns : int
    env : dict, optional
        Variables to add.
    folder : path
        Where it runs.
    """

    def __init__(self, argv, folder, columns=80, env=None):
        self.pid, self.file = pty.fork()
        if not self.pid:
            os.chdir(folder)
            names = ("NO_COLOR", "FORCE_COLOR")
            kept = {name: value for name, value in os.environ.items() if name not in names}
            terminal = {"TERM": "xterm", "PYTHONUTF8": "1"}
            os.execvpe(str(argv[0]), [*map(str, argv)], {**kept, **terminal, **(env or {})})
        self.resize(columns)
        self.written, self.status = "", None
        # A reading may end within a character.
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def resize(self, columns):
        """Change the width."""
        fcntl.ioctl(self.file, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))

    def wait_for(self, text, timeout_s=100):
        """Read until something was written."""
        end = time.monotonic() + timeout_s
        while text not in self.written:
            assert time.monotonic() < end, self.written
            assert self._read(), f"ended without {text!r}: {self.written}"

    def send(self, number):
        """Send a signal to the program."""
        os.kill(self.pid, number)

    def finish(self):
        """Read to the end; return all that was written."""
        while self._read():
            pass
        _, status = os.waitpid(self.pid, 0)
        os.close(self.file)
        self.status = os.WEXITSTATUS(status) if os.WIFEXITED(status) else -os.WTERMSIG(status)
        return self.written

    def _read(self):
        try:
            some = os.read(self.file, 65536)
        except OSError:  # its last process has closed the terminal
            return False
        self.written += self._decoder.decode(some)
        return bool(some)


INTERRUPT = signal.SIGINT
