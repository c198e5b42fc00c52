"""Signals to the launcher are requests to the job; so is an exception in one of its threads."""

import contextlib
import signal
import threading


@contextlib.contextmanager
def noted(requests):
    """Note signals as requests to the job; restore the handlers afterwards (for a notebook).

    What this process was started to ignore stays ignored: HUP under nohup, INT and QUIT where a
    script has started it with `&`. No terminal stops it, or the hosts would take it for dead:
    neither Ctrl-Z nor, after `stty tostop`, a line that it writes in the background.

    `requests` takes the numbers of the signals; a list of those that asked for the end is yielded.
    """
    stops = []
    numbers = [signal.SIGTERM, signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGUSR1]
    numbers += [signal.SIGUSR2, signal.SIGXCPU]  # Grid Engine is going to kill the job
    handlers = {signal.SIGTSTP: lambda *_: None, signal.SIGTTOU: signal.SIG_IGN}

    def note(number, _):
        requests.append(number)
        if number != signal.SIGUSR1:
            stops.append(number)

    def stop(error):  # or the job would go on, without output or without heartbeats
        show(error)
        note(signal.SIGTERM, None)

    handlers.update(dict.fromkeys(numbers, note))
    handlers = {n: to for n, to in handlers.items() if signal.getsignal(n) is not signal.SIG_IGN}
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    show, threading.excepthook = threading.excepthook, stop
    try:
        yield stops
    finally:
        threading.excepthook = show
        for number, handler in before.items():
            signal.signal(number, handler)
