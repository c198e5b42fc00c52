"""End a process of a job on an exception that Python would print and forget, or wait after.

Python prints an exception in a callback from MXNet's library (a store's updater, an operator of
your own) and goes on, with weights that were not updated. After an exception that nobody caught,
the store's destructor waits for the other workers, for ever.
"""

import functools
import os
import sys
import threading
import traceback

before_end = []  # functions to call before a process is ended: they let files be finished
left_with = []  # what `sys.exit` was called with, the outermost frame, and where that was then


class Refused(ValueError):
    """A mistake in the program, told in a line."""

    exit_status = 2


def end_on_exceptions(mxnet=None):
    """Set sys.excepthook and sys.unraisablehook: an exception ends this process at once.

    Without it a worker that failed waits for the others for ever, and one whose callback from MXNet
    failed goes on with weights that were not updated.
    """
    sys.excepthook = end_with_traceback
    sys.unraisablehook = _end_in_callback


def note_failed_exit(mxnet):
    """Let ``sys.exit`` with a status other than 0 end a worker at once, with that status.

    At its exit MXNet waits for all other workers. They wait for what this one does not push any
    more, and nobody sees the status. A program that catches the exit and goes on is left alone.
    """
    leave = sys.exit

    @functools.wraps(leave)
    def leave_and_note(status=None, /):
        if threading.current_thread() is threading.main_thread():
            frame = sys._getframe()
            while frame.f_back:
                frame = frame.f_back
            left_with[:] = [status, frame, frame.f_lasti]
        leave(status)

    sys.exit = leave_and_note


def end_if_failed():
    """End this process if `sys.exit` ended it with a status other than 0.

    Where the exit was caught, the outermost frame has come further than to the call that led to it.
    """
    status, frame, place = left_with or (None, None, None)
    if status not in (None, 0) and frame.f_lasti == place:
        _end(status if isinstance(status, int) else 1)  # a text: Python has printed it


def end_with_traceback(kind, error, where, advice=None):
    """End this process at once, as on an exception that nobody caught."""
    status = getattr(kind, "exit_status", None)  # told in a line: where does not matter
    if status is None:
        traceback.print_exception(kind, error, where)
        status = 130 if issubclass(kind, KeyboardInterrupt) else 1
    else:
        print(f"{os.path.basename(sys.argv[0])}: error: {error}", file=sys.stderr)
    if advice:
        print(f"error: {advice}", file=sys.stderr)
    _end(status)


def _end(status):
    """Flush what was printed, let files be finished, and end this process."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (AttributeError, OSError):  # it was closed before, or its reader is gone
            pass
    for function in before_end:
        function()
    os._exit(status & 0xFF)


def tell_mistakes_in_a_line():
    """Set sys.excepthook outside a job, too: a mistake in the use of a class ends with a line.

    Python prints the frames of the program, which are no help where a file is missing.
    """
    if sys.excepthook is sys.__excepthook__:  # a notebook has its own
        sys.excepthook = _tell_mistake


def _tell_mistake(kind, error, where):
    if hasattr(kind, "exit_status"):
        end_with_traceback(kind, error, where)
    sys.__excepthook__(kind, error, where)


def _end_in_callback(unraisable):
    if "ctypes callback" not in (unraisable.err_msg or ""):
        sys.__unraisablehook__(unraisable)
        return
    failed = f"MXNet called {unraisable.object!r}, which failed"
    end_with_traceback(unraisable.exc_type, unraisable.exc_value, unraisable.exc_traceback, failed)
