"""How the program ends: one line for a mistake of the user's, the traceback for one of ours."""

import contextlib
import errno
import os
import re
import sys
import time
import traceback

from gluon_dist.common.errors import Diverged, UsageError, last_line
from gluon_dist.common.messages import say

FOLLOWS_S = 5  # after another worker's failure; by then a launcher has ended all workers


def exit_with(main, program):
    """Call ``main()`` and end the process with its status, whatever happens.

    A worker that raises, or calls ``sys.exit``, while other workers train would print its traceback
    and then hang: the store's destructor waits at a barrier that they never reach. So every failure
    ends with ``os._exit``. Only a success exits as usual, where the workers wait for each other.

    Parameters
    ----------
    main : callable
        Returns the exit status, ``None`` for 0.
    program : str
        Name to put in front of the message.
    """
    # Kept until the end: it holds the frames of main() and so the store, whose destructor would
    # wait for the other workers before the status is set.
    _held = None
    try:
        status = main() or 0
    except BaseException as error:
        _held, status = error, 1
        with contextlib.suppress(OSError):  # the screen is a full disk
            status = _tell(error, program)
    flush(sys.stdout)
    flush(sys.stderr)
    if status != 0:
        os._exit(status)


def _tell(error, program):
    """Print what ended the program; return the exit status."""
    if isinstance(error, (UsageError, Diverged)):
        say(f"error: {error}", program)
        return error.exit_status
    if isinstance(error, KeyboardInterrupt):
        say("interrupted", program)
        return 130
    if isinstance(error, SystemExit):
        if isinstance(error.code, str):
            print(error.code, file=sys.stderr)
        return error.code if isinstance(error.code, int) else int(error.code is not None)
    if isinstance(error, MemoryError) or re.search("out of memory|bad_alloc", str(error)):
        reason = last_line(error) if str(error).strip() else "no more to be had"
        say(f"error: out of memory: {reason}; try smaller sizes", program)
        return 1
    if "Horovod has been shut down" in str(error):
        time.sleep(FOLLOWS_S)
        say(
            "error: another worker, or the connection to it, failed: see what was said before",
            program,
        )
        return 1
    if isinstance(error, BrokenPipeError):  # `| head` has seen enough
        say("error: what reads its output has ended", program)
        return 1
    traceback.print_exception(type(error), error, error.__traceback__)
    return 1


def flush(stream):
    """Flush a stream whose reader may be gone."""
    try:
        stream.flush()
    except AttributeError:  # None: it was closed before
        pass
    except OSError as error:
        if error.errno == errno.ENOSPC:  # Python would try again, and end with status 120
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
