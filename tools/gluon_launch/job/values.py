"""An option of the command line, and what its value looks like: argparse's types."""

import argparse
import re
from dataclasses import dataclass
from typing import Any

from gluon_launch.job.job import ROLES

REQUIRED = object()


@dataclass(frozen=True)
class Flag:
    """An option of the command line."""

    names: str  # with a space between them
    takes: Any  # an argparse type, a tuple of the possible values, or bool: it takes no value
    default: Any  # a list: the option may be given several times
    shown: str  # what --help calls the value
    help: str

    @property
    def option(self):
        """Its name among the parsed options."""
        return self.names.split()[-1].lstrip("-").replace("-", "_")


def given(text):
    """Read a text that is not empty."""
    if not text.strip():
        raise argparse.ArgumentTypeError(f"{text!r} is empty: is a variable not set?")
    return text


def count(text):
    """Read a number of processes."""
    if not re.fullmatch(r"[0-9]{1,4}", text) or not 1 <= int(text) <= 1000:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 to 1000")
    return int(text)


def servers(text):
    """Read a number of servers, which may be 0."""
    return 0 if text == "0" else count(text)


def seconds(text):
    """Read a number of seconds, with a fraction or not."""
    try:
        value = float(text)
    except ValueError:
        value = -1
    if not 0 <= value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds")
    return value


def size(text):
    """Read `100MB` or `2.5 GB` as bytes; `none` as 0."""
    match = re.fullmatch(r"(?i)([0-9]{1,9}(?:\.[0-9]{1,9})?) *([kMGT]?)B?", text)
    if not match and text != "none":
        raise argparse.ArgumentTypeError(f"{text!r} is not a size such as 100MB, or none")
    return int(float(match[1]) * 1000 ** " kmgt".index(match[2].lower() or " ")) if match else 0


def memory(text):
    """Read `2g` or `512m` as megabytes."""
    match = re.fullmatch(r"(?i)([0-9]{1,7})([gm])b?", text)
    if not match or not int(match[1]):
        raise argparse.ArgumentTypeError(f"{text!r} is not like 2g or 512m")
    return int(match[1]) * (1024 if match[2].lower() == "g" else 1)


def whole(text):
    """Read a whole number."""
    if not re.fullmatch(r"[0-9]{1,9}", text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number")
    return int(text)


def port(text):
    """Read the number of a port."""
    if not re.fullmatch(r"[0-9]{1,5}", text) or not 1 <= int(text) <= 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port: 1 to 65535")
    return int(text)


def roles(text):
    """Read `worker:0,server:*` as a set of (role, rank or None); a role alone means all of it."""
    wanted = set()
    for item in text.split(","):
        match = re.fullmatch(r"(\w+)(?::(\*|[0-9]+))?", item.strip())
        if not match or match[1] not in ROLES:
            raise argparse.ArgumentTypeError(
                f"{item!r} is not like worker:0, server:* or scheduler"
            )
        wanted.add((match[1], int(match[2]) if match[2] not in (None, "*") else None))
    return wanted
