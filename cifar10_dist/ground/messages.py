"""What the program says besides its results: one line each, on standard error."""

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
