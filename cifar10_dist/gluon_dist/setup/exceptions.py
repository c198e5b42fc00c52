"""End a process of a job on an exception that Python would print and forget, or wait after.

Python prints an exception in a callback from MXNet's library (a store's updater, an operator of
your own) and goes on, with weights that were not updated. After an exception that nobody caught,
the store's destructor waits for the other workers, for ever.
"""

import os
import sys
import traceback

from gluon_dist.common.failure import NotSaved, UsageError
from gluon_dist.common.messages import say
from gluon_dist.contract import USAGE

TOLD = UsageError, NotSaved  # in a line: where in the program does not matter
before_end = []  # functions to call before a process is ended: they let files be finished


def end_on_exceptions(mxnet=None):
    """Set sys.excepthook and sys.unraisablehook: an exception ends this process at once.

    Without it a worker that failed waits for the others for ever, and one whose callback from MXNet
    failed goes on with weights that were not updated.
    """
    sys.excepthook = end_with_traceback
    sys.unraisablehook = _end_in_callback


def end_with_traceback(kind, error, where, advice=None):
    """End this process at once, as on an exception that nobody caught."""
    if issubclass(kind, TOLD):
        say(f"error: {error}")
    else:
        traceback.print_exception(kind, error, where)
    if advice:
        print(f"error: {advice}", file=sys.stderr)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (AttributeError, OSError):  # it was closed before, or its reader is gone
            pass
    for function in before_end:
        function()
    statuses = {UsageError: USAGE, KeyboardInterrupt: 130}
    os._exit(next((status for each, status in statuses.items() if issubclass(kind, each)), 1))


def tell_mistakes_in_a_line():
    """Let some errors end any process with a line, as those of a job; Python prints the frames."""
    if sys.excepthook is sys.__excepthook__:  # a notebook has its own
        sys.excepthook = _tell_mistake


def _tell_mistake(kind, error, where):
    if issubclass(kind, TOLD):
        end_with_traceback(kind, error, where)
    sys.__excepthook__(kind, error, where)


def _end_in_callback(unraisable):
    if "ctypes callback" not in (unraisable.err_msg or ""):
        sys.__unraisablehook__(unraisable)
        return
    print(f"error: MXNet called {unraisable.object!r}, which failed:", file=sys.stderr)
    end_with_traceback(unraisable.exc_type, unraisable.exc_value, unraisable.exc_traceback)
