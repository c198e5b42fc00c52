"""A parser of one-line errors, and values that must fit: numbers and lists."""

import argparse
import math

from process.failure import UsageError


class OneLineParser(argparse.ArgumentParser):
    """A parser whose complaints are one line."""

    def error(self, message):
        """Raise instead of printing the usage and exiting: see :func:`failure.run`."""
        raise UsageError(message)


def _number(kind, fits, what):
    """Make an argparse type for a number that must fit."""

    def parse(text):
        try:
            value = kind(text)
        except ValueError:
            value = None
        if value is None or not fits(value):
            raise argparse.ArgumentTypeError(f"{text!r} is not {what}")
        return value

    return parse


positive = _number(int, lambda x: x > 0, "a whole number above 0")
count = _number(int, lambda x: 0 <= x < 2**31, "a whole number from 0")
positive_float = _number(float, lambda x: 0 < x < float("inf"), "a number above 0")
not_negative = _number(float, lambda x: 0 <= x < float("inf"), "a number from 0")
fraction = _number(float, lambda x: 0 < x <= 1, "a fraction in (0, 1], such as 0.75")


def _list_of(kind, fits, what):
    """Make an argparse type for numbers with commas between them."""

    def parse(text):
        try:
            values = tuple(kind(part) for part in text.strip("() ").split(",")) if text else ()
        except ValueError:
            values = None
        if values is None or not fits(values):
            raise argparse.ArgumentTypeError(f"{text!r} is not {what}")
        return values

    return parse


gpu_list = _list_of(
    int, lambda v: all(i >= 0 for i in v) and len(set(v)) == len(v), "a list of GPUs such as 0,1"
)
shape = _list_of(
    int,
    lambda v: len(v) == 3 and v[0] == 3 and min(v) > 0,
    "a shape of colour images such as 3,32,32",
)
epochs = _list_of(
    int,
    lambda v: list(v) == sorted(set(v)) and min(v, default=1) > 0,
    "increasing epochs such as 30,60",
)
triple = _list_of(
    float,
    lambda v: len(v) == 3 and all(map(math.isfinite, v)),
    "three numbers such as 123.68,116.78,103.94",
)
positive_triple = _list_of(
    float,
    lambda v: len(v) == 3 and all(0 < x < float("inf") for x in v),
    "three numbers above 0 such as 58.4,57.1,57.4",
)
