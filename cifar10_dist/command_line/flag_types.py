"""What a flag takes: argparse types for numbers, lists and paths."""

import argparse

HIGHEST = 2**31 - 1  # MXNet keeps whole numbers in 32 bits
SMALL, LARGE = 1e-30, 1e30  # float32 reaches from 1e-38 to 1e38: room for factors


def _value(kind, fits, what):
    """Make an argparse type for one value of a kind; ``what`` names it in the error message."""

    def parse(text):
        try:
            value = kind(text)
        except ValueError:
            value = None
        if value is None or not fits(value):
            raise argparse.ArgumentTypeError(f"{text!r} is not {what}")
        return value

    return parse


def _values(kind, fits, what):
    """Make an argparse type for values with commas between them; the value is a tuple."""

    def split(text):
        return tuple(kind(part) for part in text.strip("() ").split(",")) if text else ()

    return _value(split, fits, what)


def compression(text):
    """Return "fp16" or "2bit"; None for "none"."""
    if text not in ("none", "fp16", "2bit"):
        raise argparse.ArgumentTypeError(f"{text!r} is not none, fp16 or 2bit")
    return None if text == "none" else text


# fmt: off
path = _value(str, bool, "a path: is a variable not set?")
positive = _value(int, lambda x: 0 < x <= HIGHEST, f"a whole number from 1 to {HIGHEST}")
count = _value(int, lambda x: 0 <= x <= HIGHEST, f"a whole number from 0 to {HIGHEST}")
positive_float = _value(
    float, lambda x: SMALL <= x <= LARGE, f"a number above 0 ({SMALL} to {LARGE})")
not_negative = _value(
    float, lambda x: x == 0 or SMALL <= x <= LARGE, f"0, or a number from {SMALL} to {LARGE}")
below_one = _value(float, lambda x: x == 0 or SMALL <= x < 1, "a number of at least 0 and below 1")
fraction = _value(float, lambda x: SMALL <= x <= 1, "a fraction in (0, 1], such as 0.75")

gpu_list = _values(
    int, lambda v: min(v, default=0) >= 0 and len(set(v)) == len(v), "a list of GPUs such as 0,1")
epochs = _values(
    int, lambda v: min(v, default=1) > 0 and list(v) == sorted(set(v)),
    "a list of increasing epochs such as 30,60")
shape = _values(
    int, lambda v: len(v) == 3 and v[0] == 3 and min(v) > 0,
    "a shape of colour images such as 3,32,32")
triple = _values(
    float, lambda v: len(v) == 3 and all(abs(x) <= LARGE for x in v),
    "three numbers such as 123.68,116.78,103.94")
positive_triple = _values(
    float, lambda v: len(v) == 3 and all(SMALL <= x <= LARGE for x in v),
    "three numbers above 0 such as 58.4,57.1,57.4")
# fmt: on
