"""What the program says, a line each: results on standard output, all else on standard error."""

import errno
import sys


def warn(text):
    """Say what the user should know, though the program goes on."""
    say(f"warning: {text}")


def say(text, program="cifar10_dist.py"):
    """Say a line at once, from any thread.

    The line is written in one piece, its end included: workers that share a screen do not mix
    their lines, even where Python does not buffer.
    """
    print(f"{program}: {text}\n", end="", file=sys.stderr, flush=True)


def report(line):
    """Print a line of results; a log on a full disk does not end the training."""
    try:
        print(line, flush=True)
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
