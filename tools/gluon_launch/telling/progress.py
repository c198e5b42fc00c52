"""What a job does now, read from what its workers print: MXNet's speed lines, bars like tqdm's."""

import re
from dataclasses import dataclass
from typing import Optional

SPEED = re.compile(r"Epoch ?\[(\d+)\] Batch ?\[(\d+)[^\]]*\]\s+Speed: ([\d.]+) samples/sec")
# what: 12%|███   | 12/100 [00:10<01:20,  1.10batch/s]; or 1.35s/batch, if it is slow
BAR = re.compile(
    r"(?:(?P<what>.*?): )? *(?P<percent>\d+)%\|.*\| *(?P<done>\S+/\S+) "
    r"\[[\d:]+<(?P<left>[\d:?]+)(?:, +(?P<rate>[\d.]+[^\s\],]+))?[^\]]*\]"
)
ACCURACY = re.compile(r"Epoch (\d+): Test_acc ")
SLOW = re.compile(r"worker (\d+) takes .*: all wait for it")  # of gluon_dist's own programs
MOST_ROWS = 8  # of workers
MOST_HOSTS = 4  # that are named
BAR_WIDTH = 24


@dataclass
class Row:
    """What a worker's bar last said."""

    text: str  # as it was printed
    percent: Optional[int] = None  # with the rest: None if it is no bar like tqdm's
    what: str = ""
    done: str = ""
    left: str = ""
    rate: str = ""


class Progress:
    """What is known of a job's course.

    Parameters
    ----------
    num_workers : int
    began : float
        When the job began, in seconds on the clock of `rows`.
    """

    def __init__(self, num_workers, began):
        self.num_workers, self.began = num_workers, began
        self.phase = ""  # what is done before the processes run
        self.where = ""  # "on d1, d2"
        self.bars = {}  # by rank, each a `Row`
        self._is_cut = {}  # by rank: the end of the bar's line has not come yet
        self.speeds = {}  # samples/s by rank
        self.position = ""  # "epoch 3, batch 40"
        self.slow = None  # the rank of the worker that all others wait for

    def take(self, rank, text, end):
        """Take in what a worker printed; return what is to be shown of it, None for nothing.

        A bar, and what wipes one out, is shown only by :meth:`rows`; `end` is "" for a part of a
        line, which has waited for its end.
        """
        found = SPEED.match(text)
        if found:
            self.speeds[rank] = float(found[3])
            self.position = f"epoch {found[1]}, batch {found[2]}"
        found = SLOW.search(text)
        if found:
            self.slow = int(found[1])
        found = BAR.match(text)
        if found:
            fields = found.groupdict("")
            self.bars[rank] = Row(text.strip(), int(fields.pop("percent")), **fields)
            self._is_cut[rank] = end == ""
            others = text[found.end() :].strip()  # a message that was printed behind the bar
            return others or (text if end == "\n" else None)
        if text.strip():
            if end != "\r":
                return text
            self.bars[rank] = Row(text.strip())
        elif text:  # blanks wipe a bar out
            self.bars.pop(rank, None)
        elif end == "\n" and not self._is_cut.get(rank):  # an empty line, no end of a bar
            return text
        self._is_cut[rank] = end == ""
        return None

    def note(self, phase, hosts):
        """Note what is done now, and the names of the hosts if they are of interest."""
        self.phase = phase
        names = ", ".join(hosts) if len(hosts) <= MOST_HOSTS else f"{len(hosts)} hosts"
        self.where = f"on {names}" if names else ""

    def rows(self, now, signs):
        """What to show: a line on the job, then one for each worker that has a bar.

        `signs` are the characters for (the full part of a bar, the rest, a point between words).
        """
        full, rest, point = signs
        workers = f"{self.num_workers} worker{'s' * (self.num_workers > 1)} {self.where}".strip()
        words = [self.phase or workers, clock(now - self.began)]
        if not self.phase:
            words += [self.position] if self.position else []
            words += [self._speed()] if self.speeds else []
        found = [f" {point} ".join(words)]
        for rank, row in sorted(self.bars.items())[:MOST_ROWS]:
            shown = row.text
            if row.percent is not None:
                count = row.percent * BAR_WIDTH // 100
                parts = [row.what, full * count + rest * (BAR_WIDTH - count), row.done, row.rate]
                shown = "  ".join([*filter(None, parts), f"{row.left} left"])
            mark = "  <- the others wait" if rank == self.slow else ""
            found.append(f"  worker {rank}  {shown}{mark}")
        if len(self.bars) > MOST_ROWS:
            found.append(f"  and {len(self.bars) - MOST_ROWS} more")
        return found

    def _speed(self):
        """Samples of all workers: those that did not tell are taken to be as fast as the others."""
        speed = sum(self.speeds.values()) * self.num_workers / len(self.speeds)
        about = "~" if len(self.speeds) < self.num_workers else ""
        return f"{about}{speed:.0f} samples/s"


def clock(seconds):
    """A time as `1:23`, or `2:01:23`."""
    minutes, seconds = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"


class Agreement:
    """Holds back the accuracies of an epoch until all workers have told the same, or others.

    Parameters
    ----------
    num_workers : int
    """

    HOLD_S = 2

    def __init__(self, num_workers):
        self.num_workers = num_workers
        self._held = []  # each (process, stream, text)
        self._after = []  # what these workers printed after it
        self._since = 0

    def take(self, process, stream, text, now):
        """Take a line of a worker; return the lines that are to be shown now, or None: as it is."""
        if self.num_workers < 2 or not ACCURACY.match(text):
            if process not in [who for who, _, _ in self._held]:
                return None
            self._after.append((process, stream, text))
            return []
        shown = self.release() if self._held and self._held[0][2] != text else []
        self._since = self._since if self._held else now
        self._held.append((process, stream, text))
        if len(self._held) == self.num_workers:
            (process, stream, text), self._held = self._held[0], []
            shown.append((process, stream, f"{text} ({self.num_workers} workers agree)"))
            shown += self.release()
        return shown

    def late(self, now):
        """The lines that were held for too long."""
        return self.release() if self._held and now - self._since > self.HOLD_S else []

    def release(self):
        """All lines that are held, as they were printed."""
        held, self._held, self._after = [*self._held, *self._after], [], []
        return held
