"""Lines for the user: results on standard output, everything else on standard error."""

import errno
import os
import sys


def warn(text):
    """Print a warning: the program continues."""
    say(f"warning: {text}")


def say(text, program=None):
    """Print a line at once, from any thread; ``program`` is by default the script's name.

    The line is written by one call, with its end: workers that share a screen do not mix their
    lines, even where Python does not buffer.
    """
    program = program or _script()
    print(f"{program}: {text}\n", end="", file=sys.stderr, flush=True)


def report(line):
    """Print a line of results; a full disk does not end the training."""
    try:
        print(line, flush=True)
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise


def counted(number, word):
    """Return a number of things: `1 worker`, `2 workers`."""
    return f"{number} {word}{'s' * (number != 1)}"


def _script():
    """Return the name of the user's program; without one, as in a notebook, the package's."""
    name = os.path.basename(sys.argv[0])
    is_script = name.endswith(".py") and name not in ("ipykernel_launcher.py", "__main__.py")
    return name if is_script else "gluon_dist"
