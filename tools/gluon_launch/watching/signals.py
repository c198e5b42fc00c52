"""Signals to the launcher are requests to the job; so is an exception in one of its threads."""

import contextlib
import signal
import threading


@contextlib.contextmanager
def noted(requests):
    """Note signals as requests to the job; restore the handlers afterwards (for a notebook).

    Parameters
    ----------
    requests : collections.deque
        Takes the numbers of the signals.

    Yields
    ------
    list of int
        The signals that asked for the end.
    """
    stops = []
    numbers = [signal.SIGTERM, signal.SIGINT, signal.SIGQUIT, signal.SIGUSR1, signal.SIGTSTP]
    numbers += [signal.SIGUSR2, signal.SIGXCPU]  # Grid Engine is going to kill the job
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # not under nohup
        numbers.append(signal.SIGHUP)

    def note(number, _):
        if number != signal.SIGTSTP:  # a launcher stopped by Ctrl-Z would count as dead
            requests.append(number)
        if number not in (signal.SIGTSTP, signal.SIGUSR1):
            stops.append(number)

    def stop(error):  # or the job would go on, without output or without heartbeats
        show(error)
        note(signal.SIGTERM, None)

    before = {number: signal.signal(number, note) for number in numbers}
    show, threading.excepthook = threading.excepthook, stop
    try:
        yield stops
    finally:
        threading.excepthook = show
        for number, handler in before.items():
            signal.signal(number, handler)
