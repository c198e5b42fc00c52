"""Ends of a worker that would be wrong without a word, or would never come.

Three things that Python and MXNet do are harmless in one process, and ruin or hang a job of several:

- Python prints an exception in a callback from MXNet's library (a store's updater, an operator of
  your own) and goes on, with weights that were not updated.
- After an exception the store's destructor waits for the other workers, for ever.
- At its exit MXNet drops what is still queued: with it go the last pushes of a program that ends
  right after ``trainer.step``, for which the other workers wait.
"""

import atexit
import os
import sys
import traceback


def end_on_exceptions():
    """End this process, with the traceback, where Python would go on or wait for others."""
    sys.excepthook = end_with_traceback
    sys.unraisablehook = _end_in_callback


def finish_queued_work(waitall):
    """Do what MXNet has queued before it shuts down.

    Parameters
    ----------
    waitall : callable
        ``mxnet.nd.waitall``. MXNet must have been imported: what is registered last runs first.
    """

    def finish():
        try:
            waitall()
        except Exception as error:  # of an operator that nobody has asked for its result
            end_with_traceback(type(error), error, error.__traceback__)

    atexit.register(finish)


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
