"""Runs that are kept until the whole measurement is done, so that it can be gone on with."""

import hashlib
import json
from collections import defaultdict

from measured import ROOT

FOLDER = ROOT / "build" / "bench"


class Kept:
    """The runs of one measurement, a line of JSON each in a file.

    Parameters
    ----------
    what : list
        Of what JSON can hold: the measured files, the machine, the options. The file is named after
        it, so that nothing is found when any of it is changed.
    folder : pathlib.Path
    """

    def __init__(self, what, folder=FOLDER):
        key = json.dumps(what, sort_keys=True)
        self._path = folder / f"{hashlib.sha256(key.encode()).hexdigest()[:12]}.jsonl"
        self.runs, self.finished = defaultdict(list), set()
        for line in self._path.read_text().splitlines() if self._path.exists() else ():
            try:
                group, *run = json.loads(line)
            except ValueError:  # killed while it was written
                continue
            if run:
                self.runs[group].append(run)
            else:
                self.finished.add(group)

    def take(self, group, name, act):
        """Return the figures of the next run of a group: the kept ones, or those of a new run."""
        if self.runs[group] and self.runs[group][0][0] == name:
            return self.runs[group].pop(0)[1]
        self.runs[group].clear()
        figures = act()
        self._write([group, name, figures])
        return figures

    def finish(self, group):
        """Remember that a group is in the tables of results."""
        self._write([group])

    def forget(self):
        """Drop all runs: the measurement is done."""
        self._path.unlink(missing_ok=True)

    def _write(self, line):
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with open(self._path, "a") as file:  # on a line of its own, whatever was killed before
            file.write(f"\n{json.dumps(line)}\n")
