"""What a job does now, read from what its workers print: MXNet's speed lines, bars like tqdm's."""

import re
from dataclasses import dataclass
from typing import Optional

from gluon_launch.job.statuses import counted
from gluon_launch.telling.columns import fitted, joined, width

SPEED = re.compile(r"Epoch ?\[(\d+)\] Batch ?\[(\d+)[^\]]*\]\s+Speed: (\d+(?:\.\d+)?) samples/sec")
TIME = r"\d+(?::\d+)*"
# what: 12%|███   | 12/100 [00:10<01:20,  1.10batch/s]; or 1.35s/batch, if it is slow
BAR = re.compile(
    r"(?:(?P<what>.*?): )? *(?P<percent>\d+)%\|.*\| *(?P<done>\S+/\S+) "
    rf"\[(?P<spent>{TIME})<(?P<left>\?|{TIME})(?:, +(?P<rate>[\d.]+ ?[^\s\],]+))?[^\]]*\]"
)
EPOCH = re.compile(r"(?i)\bepoch\W*\d+(?:.*\((\d+) of (\d+)\))?")  # in a bar's words
BAR_RATE = re.compile(r"(?P<number>\d+(?:\.\d+)?)(?: ?(?P<unit>[^\d\s/]+)/s|s/(?P<slow>\S+))")
SAMPLES = "samples"  # the unit of rates that can be added up
# Of the training program's own lines.
SLOW = re.compile(r"worker (\d+) takes .*: all wait for it")
RECOVERED = re.compile(r"worker \d+ keeps up with the others again")
# What is said of a phase where there is no room for all of it.
SHORTER = (
    (re.compile("no output yet: Python and MXNet are being loaded"), "loading MXNet"),
    (re.compile("no output yet: the program is being loaded"), "loading the program"),
    (re.compile("no output yet: all workers have found each other"), "no output yet"),
    (re.compile("(waiting for .*) to import MXNet and make its store"), r"\1"),
    (re.compile("all workers have ended: ending the rest"), "ending the rest"),
    (re.compile("stopping: .* for (.*) to save and end"), r"stopping \1"),
)
MOST_ROWS = 8  # of workers
MOST_HOSTS = 4  # that are named
BAR_WIDTHS = (24, 16, 8)  # the first that there is room for
LEFT_DIGITS, RATE_DIGITS = len("9:59"), len("9999")  # that a row has room for
NEAR_PERCENT = 10  # workers whose bars differ by no more are shown in one row
# What is left out of a row that is too long, in this order: a bar, rates, what is in brackets.
BAR_FIRST, RATE, IN_BRACKETS, TIME_LEFT, COUNT = range(1, 6)


@dataclass
class Row:
    """What a worker's bar last said."""

    text: str  # as it was printed
    percent: Optional[int] = None  # with the rest: None if it is no bar like tqdm's
    what: str = ""
    done: str = ""
    spent: str = ""
    left: str = ""
    rate: str = ""

    def place(self):
        """Return how far it is: by the first number in its words, such as that of an epoch."""
        number = re.search(r"\d+", self.what)
        return int(number[0]) if number else -1, -1 if self.percent is None else self.percent

    def time_left(self):
        """Return how long it lasts still, in words, and in fewer; "" for what is not known.

        That is the time of all epochs where the bar tells their number (tests between them are not
        counted), else of this one.
        """
        if self.percent is None or "?" in self.left:
            return "", ""
        left = seconds(self.left) if self.percent < 100 else 0
        epoch = EPOCH.search(self.what)
        if epoch and epoch[1]:
            following = max(0, int(epoch[2]) - int(epoch[1]))
            left += following * (seconds(self.spent) + left)
            epoch = None
        if not left and self.percent == 100:
            return "", ""
        words = f"{clock(left)} left"
        return words + " in this epoch" * bool(epoch), words

    def spare(self, rate):
        """Return the columns that its numbers may still need: the bar keeps its width meanwhile."""
        count = 2 * len(self.done.partition("/")[2]) + 1
        left, _ = self.time_left()
        now_and_then = [
            (len(self.done), count),
            (rate.find(" "), RATE_DIGITS if rate else -1),
            (left.find(" ") if left else -len("   left"), LEFT_DIGITS),
        ]
        return sum(max(0, then - now) for now, then in now_and_then)

    def is_near(self, other):
        """Return whether another bar is of the same kind, and nearly as long."""
        if self.percent is None or other.percent is None:
            return self.text == other.text
        same = self.what == other.what
        return same and abs(self.percent - other.percent) <= NEAR_PERCENT


class Progress:
    """What is known of a job's course.

    Parameters
    ----------
    num_workers : int
    began : float
        When the job began, in seconds on the clock of `rows`.
    """

    def __init__(self, num_workers, began):
        self.num_workers = num_workers
        self.begin(began, number=1)

    def begin(self, began, number):
        """Begin the rows anew: a try at the job begins, with this number."""
        self.began, self.number = began, number
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
        elif RECOVERED.search(text):
            self.slow = None
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

    def rows(self, now, signs, columns=80):
        """Return what to show: a line on the job, then rows of workers that have a bar.

        `signs` are the characters for (the full part of a bar, the rest, a point between words).
        """
        bars = dict(self.bars)  # this is another thread than that of `take`
        found = [self._head(bars, now, f" {signs[2]} ", columns)]
        groups = self._groups(bars)
        for ranks in groups[:MOST_ROWS]:
            found.append(self._row(bars, ranks, signs, columns))
        more = sum(map(len, groups[MOST_ROWS:]))
        if more:
            found.append(fitted([(f"  and {counted(more, 'more worker')}", 0, "")], "", columns))
        return found

    def _head(self, bars, now, between, columns):
        """Return the line on the job."""
        tries = [(f"try {self.number}", 0, "")] * (self.number > 1)
        time = clock(now - self.began)
        if self.phase:
            room = columns - len(between + time) - sum(len(between + words) for words, *_ in tries)
            phase = fitted([(self.phase, IN_BRACKETS, shorter(self.phase))], "", room)
            return fitted([(phase, 0, ""), *tries, (time, 0, "")], between, columns)
        who = counted(self.num_workers, "worker")
        pieces = [(f"{who} {self.where}".strip(), IN_BRACKETS, who), *tries, (time, 0, "")]
        if self.position and not bars:  # a bar is newer
            pieces.append((self.position, BAR_FIRST, ""))
        pieces.append((self._speed(bars), RATE, ""))
        return fitted(pieces, between, columns)

    def _groups(self, bars):
        """Return the ranks that share a row: their bars are near each other; not the slow one."""
        groups = []
        for rank, row in sorted(bars.items(), key=lambda item: -(item[1].percent or 0)):
            for group in groups:
                if rank != self.slow != group[0] and row.is_near(bars[group[0]]):
                    group.append(rank)
                    break
            else:
                groups.append([rank])
        return sorted(map(sorted, groups))

    def _row(self, bars, ranks, signs, columns):
        """Return the row of workers that are near each other: of the last of them."""
        rows = [bars[rank] for rank in ranks]
        row = min(rows, key=lambda each: each.percent or 0)
        pieces = [(f"  {workers(ranks)}", 0, "")]
        if row.percent is None:
            pieces.append((row.text, 0, ""))
        else:
            plain = re.sub(r" *\([^)]*\)", "", row.what)
            left, shorter_left = row.time_left()
            rate = _rate(rows) if len(rows) < len(bars) or not self._speed(bars) else ""
            pieces += [(row.what, IN_BRACKETS, plain), ("", BAR_FIRST, ""), (row.done, COUNT, "")]
            pieces += [(rate, RATE, ""), (left, IN_BRACKETS, (shorter_left, TIME_LEFT, ""))]
        first = max(bars.values(), key=Row.place)
        if self.slow in ranks:
            pieces.append(("<- the others wait", 0, ""))
        elif not row.is_near(first) and row.place() < first.place():
            pieces.append(("<- behind", 0, ""))
        if row.percent is not None:
            room = columns - width(joined(pieces, "  ")) - 2 - row.spare(rate)
            wide = next((each for each in BAR_WIDTHS if each <= room), 0)
            count = row.percent * wide // 100
            pieces[2] = (signs[0] * count + signs[1] * (wide - count), BAR_FIRST, "")
        return fitted(pieces, "  ", columns)

    def _speed(self, bars):
        """Return the samples/s of all workers: one that did not tell counts as the others' mean."""
        known = {rank: per_second(row.rate) for rank, row in bars.items()}
        known = {rank: rate for rank, (rate, unit) in known.items() if unit == SAMPLES}
        speeds = known or dict(self.speeds)
        if not speeds:
            return ""
        speed = sum(speeds.values()) * self.num_workers / len(speeds)
        about = "~" if len(speeds) < self.num_workers else ""
        return f"{about}{speed:.0f} samples/s{' in all' * (self.num_workers > 1)}"


def shorter(phase):
    """Return a phase in fewer words, where there are fewer."""
    for pattern, words in SHORTER:
        found = pattern.fullmatch(phase)
        if found:
            return found.expand(words)
    return phase


def is_bar(text):
    """Return whether this is a bar like tqdm's, and nothing else."""
    return BAR.fullmatch(text.strip()) is not None


def per_second(rate):
    """Return a bar's rate as a number and its unit; (0, "") without one. `1.35s/batch` is slow."""
    found = BAR_RATE.fullmatch(rate)
    if not found or not float(found["number"]):
        return 0, ""
    number = float(found["number"])
    return (1 / number, found["slow"]) if found["slow"] else (number, found["unit"])


def _rate(rows):
    """Return the mean rate of these bars, each a second, if they have one unit."""
    rates, units = zip(*(per_second(row.rate) for row in rows))
    if len(set(units)) > 1 or not units[0]:
        return ""
    mean = sum(rates) / len(rates)
    return f"{mean:.{0 if mean >= 10 else 2}f} {units[0]}/s{' each' * (len(rows) > 1)}"


def workers(ranks):
    """Return workers by their ranks: `worker 1`, `workers 0-3, 5`."""
    return f"worker{'s' * (len(ranks) > 1)} {ranges(ranks)}"


def ranges(ranks):
    """Return numbers in order as people write them: `0-3, 5`."""
    found = []
    for rank in ranks:
        if found and rank == found[-1][1] + 1:
            found[-1][1] = rank
        else:
            found.append([rank, rank])
    return ", ".join(f"{first}" if first == last else f"{first}-{last}" for first, last in found)


def seconds(time):
    """Return the seconds of a time such as `01:23` or `2:01:23`."""
    number = 0
    for part in time.split(":"):
        number = 60 * number + int(part)
    return number


def clock(seconds):
    """Return a time as `1:23`, or `2:01:23`."""
    minutes, seconds = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"
