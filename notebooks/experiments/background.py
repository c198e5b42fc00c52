"""A command in the background, in the project's folder: to watch it, stop it, read its output."""

import os
import subprocess
import sys
import tempfile
import time

from helpers import ROOT

LIMIT_S = 300  # of each wait


class Job:
    """A running command; ``python`` is this notebook's own."""

    def __init__(self, *words):
        command = [sys.executable if word == "python" else str(word) for word in words]
        self._log = tempfile.TemporaryFile()  # noqa: SIM115
        self._process = subprocess.Popen(command, cwd=ROOT, stdout=self._log, stderr=self._log)

    def lines(self, *wanted):
        """Return the lines written so far; with words, only lines that hold one of them."""
        # Without a seek: the command writes where the file stands.
        content = os.pread(self._log.fileno(), os.fstat(self._log.fileno()).st_size, 0)
        text = content.decode(errors="replace").replace(f"{ROOT}/", "")
        return [s for s in text.splitlines() if not wanted or any(word in s for word in wanted)]

    def wait_for(self, words):
        """Wait until a line holds these words, or the command has ended."""
        end = time.monotonic() + LIMIT_S
        while not self.lines(words) and self._process.poll() is None:
            if time.monotonic() > end:
                raise TimeoutError(f"no {words!r} within {LIMIT_S} s: {self.lines()[-5:]}")
            time.sleep(0.02)

    def stop(self):
        """Send TERM, as ``kill`` does in a terminal; return the exit status."""
        self._process.terminate()
        return self.finish()

    def finish(self):
        """Wait for the end; return the exit status."""
        return self._process.wait(timeout=LIMIT_S)
