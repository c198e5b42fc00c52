"""What the program says besides its results: one line each, on standard error."""

import sys


def warn(text):
    """Say what the user should know, though the program goes on."""
    say(f"warning: {text}")


def say(text):
    """Say a line at once, from any thread."""
    print(f"cifar10_dist.py: {text}", file=sys.stderr, flush=True)
