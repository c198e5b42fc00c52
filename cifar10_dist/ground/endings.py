"""End a process of a job on an exception that Python would print and forget, or wait after.

Python prints an exception in a callback from MXNet's library (a store's updater, an operator of
your own) and goes on, with weights that were not updated. After an exception that nobody caught,
the store's destructor waits for the other workers, for ever.
"""

import os
import sys
import traceback


def end_on_exceptions():
    """End this process, with the traceback, where Python would go on or wait for others."""
    sys.excepthook = end_with_traceback
    sys.unraisablehook = _end_in_callback


def end_with_traceback(kind, error, where, advice=None):
    """End this process at once, as on an exception that nobody caught."""
    traceback.print_exception(kind, error, where)
    if advice:
        print(f"error: {advice}", file=sys.stderr)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (AttributeError, OSError):  # it was closed before, or its reader is gone
            pass
    os._exit(130 if issubclass(kind, KeyboardInterrupt) else 1)


def _end_in_callback(unraisable):
    if "ctypes callback" not in (unraisable.err_msg or ""):
        sys.__unraisablehook__(unraisable)
        return
    print(f"error: MXNet called {unraisable.object!r}, which failed:", file=sys.stderr)
    end_with_traceback(unraisable.exc_type, unraisable.exc_value, unraisable.exc_traceback)
