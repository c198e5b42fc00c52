"""Lists of hosts as Slurm writes them: `d[1-4,7],e1`, `rack[1-2]n[01-16]`."""

import itertools
import math
import re

from gluon_launch.job.statuses import UsageError

MOST = 10000  # hosts in a list


def split(text):
    """Return the items of a list; commas in brackets do not end one."""
    return re.split(r",(?![^\[\]]*\])", text)


def expand(text):
    """Return what an item stands for: `d[1-2]:22` for d1:22 and d2:22; the last bracket is fastest.

    An IPv6 address in brackets stays what it is. May raise a `UsageError`.
    """
    parts = re.split(r"(\[[^\[\]]*\])", text)
    if any(set(part) & set("[]") for part in parts[::2]):
        raise UsageError("a bracket is missing: d[1-4,7], or [fd00::7] for IPv6")
    ranges = [_ranges(part) for part in parts]
    if math.prod(sum(map(len, of_part)) for of_part in ranges) > MOST:
        raise UsageError(f"more than {MOST} hosts")
    choices = [itertools.chain(*of_part) for of_part in ranges]
    return ["".join(chosen) for chosen in itertools.product(*choices)]


def _ranges(part):
    """Return what stands in one place: a list of sequences of texts."""
    if part[:1] != "[" or ":" in part:
        return [[part]]
    return [_range(item) for item in part[1:-1].split(",")]


def _range(item):
    """Return the numbers of `7` or `08-12`, all as wide as the first."""
    match = re.fullmatch(r"([0-9]{1,9})(?:-([0-9]{1,9}))?", item)
    first, last = match.groups(match[1]) if match else ("1", "0")
    numbers = range(int(first), int(last) + 1)
    if not numbers:
        raise UsageError(f"{item!r} in brackets is no number and no range: d[1-4,7]")
    if len(numbers) > MOST:
        raise UsageError(f"more than {MOST} hosts")
    return [f"{number:0{len(first)}}" for number in numbers]
