"""What the program says, a line each: results on standard output, all else on standard error."""

import errno
import os
import sys


def warn(text):
    """Say what the user should know, though the program goes on."""
    say(f"warning: {text}")


def say(text, program=None):
    """Say a line at once, from any thread; without ``program`` in the name of the script.

    The line is written in one piece, its end included: workers that share a screen do not mix
    their lines, even where Python does not buffer.
    """
    program = program or _script()
    print(f"{program}: {text}\n", end="", file=sys.stderr, flush=True)


def report(line):
    """Print a line of results; a log on a full disk does not end the training."""
    try:
        print(line, flush=True)
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise


def _script():
    """Return the name of the user's program; without one, as in a notebook, the package's."""
    name = os.path.basename(sys.argv[0])
    is_script = name.endswith(".py") and name not in ("ipykernel_launcher.py", "__main__.py")
    return name if is_script else "gluon_dist"
