"""Exit statuses that mean something to the launcher, and words for messages."""

import signal

from gluon_dist.contract import SAVED, USAGE  # noqa: F401  beside those of the launcher alone

TIMED_OUT = 124
KILLED = 137  # by SIGKILL
UNREACHABLE = 255  # a host could not be reached, or was lost; ssh's own


class UsageError(ValueError):
    """A mistake on the command line, told in one line; the status is then `USAGE`."""


def describe(status):
    """Return an exit status in words, a signal by its name."""
    if status >= 0:
        return f"ended with status {status}"
    try:
        return f"was killed by {signal.Signals(-status).name}"
    except ValueError:
        return f"was killed by signal {-status}"


def counted(number, word):
    """Return a number of things: `1 worker`, `2 workers`."""
    return f"{number} {word}{'s' * (number != 1)}"


def shell_status(status):
    """Return an exit status as a shell reports it: 128 + n for signal n."""
    return 128 - status if status < 0 else status
