"""Stop on request: a signal to one worker, and all of them stop after the same step.

A Python signal handler runs only while the main thread executes Python, not while it waits in MXNet
for other workers. Here a thread of its own reads the numbers of the signals from a pipe.
"""

import contextlib
import math
import os
import select
import signal
import threading
import time
from multiprocessing.util import register_after_fork

from gluon_dist.common.messages import say
from gluon_dist.contract import SAVED
from gluon_dist.setup.environment import grace_s

SIGNALS = (signal.SIGTERM, signal.SIGUSR1)
SAME_S = 3  # one request: a batch system and the launcher may both pass it on


class Stopper:
    """Takes TERM and USR1, and brings all workers to an end after the same step.

    Before :meth:`watch_training` there is nothing to save, and the process ends at once. Later a
    second TERM ends it at once (one within 3 s is the same request), and so does a grace time
    without a step and without work.

    Parameters
    ----------
    is_active : bool
        Without it (there is nowhere to save) signals do what they always do, end the process, and
        no worker asks the others.
    """

    def __init__(self, is_active):
        self.is_active, self.is_requested = is_active, False
        self._is_training, self._flag = False, None
        self._terms, self._termed = 0, -SAME_S
        self._grace_s = grace_s()
        self._seen = time.monotonic()
        self._before, self._writer = {}, None  # the handlers that were there; the pipe
        self._pipe_before = -1  # a notebook's event loop may have one

    def __enter__(self):
        if self.is_active and threading.current_thread() is threading.main_thread():
            reader, self._writer = os.pipe()
            os.set_blocking(self._writer, False)
            self._pipe_before = signal.set_wakeup_fd(self._writer, warn_on_full_buffer=False)
            for number in SIGNALS:  # what counts is the byte in the pipe
                self._before[number] = signal.signal(number, lambda *_: None)
            threading.Thread(target=self._watch, args=(reader,), daemon=True).start()
            register_after_fork(self, Stopper._leave_to_parent)
        return self

    def __exit__(self, *_):
        self._flag = None
        if self._writer is not None:
            for number, handler in self._before.items():
                signal.signal(number, handler)
            signal.set_wakeup_fd(self._pipe_before)
            os.close(self._writer)  # the thread ends
            self._writer = None

    def watch_training(self, workers):
        """From now on a request means: stop after a step that all workers agree on, and save.

        All workers make this call.
        """
        self._flag = workers.collectives.shared_flag()
        self._is_training = True

    def should_stop(self):
        """Say whether to stop now; called by every worker after each step.

        The answer is the same for all (in ``dist_async``, soon). What this call tells the others is
        read by the next one, so that nobody waits.
        """
        self._seen = time.monotonic()
        return self._flag is not None and self._flag.exchange(self.is_requested)

    def is_requested_anywhere(self, workers):
        """Return whether any worker was asked to stop; all make this call, and wait for it."""
        self._seen = time.monotonic()
        return bool(workers.all_reduce([self.is_requested])[0])

    def lift_limit(self):
        """From here on, do not end this process for taking no step: it waits for files.

        The launcher's own grace still ends what hangs.
        """
        self._grace_s = math.inf

    def finish(self):
        """Ignore requests from here on: what there was to save is saved."""
        self._flag = None  # holds the store, which must go before MXNet's own threads do
        for number in self._before:
            signal.signal(number, signal.SIG_IGN)

    def _leave_to_parent(self):
        """In a process that was forked let TERM end it, and be no request to its parent.

        A pool of loaders ends its processes by TERM, and waits for their end.
        """
        if self._writer is not None:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGTERM, self._before[signal.SIGTERM])
            os.close(self._writer)
            self._writer = None

    def _watch(self, reader):
        """Read signals from the pipe until it is closed; after a request end what hangs."""
        cpu_s = 0.0
        while True:
            if select.select([reader], [], [], 1)[0]:
                numbers = os.read(reader, 64)
                if not numbers:  # closed: the training is over
                    return os.close(reader)
                for number in filter(SIGNALS.__contains__, numbers):
                    self._take(signal.Signals(number))
            now_s = time.process_time()
            if now_s - cpu_s > 0.1:  # in a second: it works
                self._seen = time.monotonic()
            cpu_s = now_s
            if self.is_requested and time.monotonic() - self._seen > self._grace_s:
                why = f"no step for {self._grace_s:g} s after the request to stop"
                end(143, f"{why}: not saved; --grace gives more time")

    def _take(self, request):
        """Take a signal: note a request to stop, or end this process."""
        if request == signal.SIGTERM and time.monotonic() > self._termed + SAME_S:
            self._terms += 1
            self._termed = time.monotonic()
        if not self._is_training:
            end(SAVED, f"{request.name}: stopped before the training began")
        if self._terms > 1:
            end(143, "a second SIGTERM: stopped without saving")
        self._seen = time.monotonic()
        is_first, self.is_requested = not self.is_requested, True
        if is_first:
            with contextlib.suppress(OSError):  # nobody reads it, or the disk is full
                say(f"{request.name}: will save and stop within two steps")


def end(status, why):
    """End this process now: its main thread may wait for ever."""
    try:
        say(why)
    finally:
        os._exit(status)
