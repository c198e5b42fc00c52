"""Write in a thread of its own, so that a slow screen or disk holds up nothing else."""

import queue
import threading
import time

HOLD_BYTES = 1 << 20  # not written yet; above it the processes wait before they write more
LAST_BYTES = 2 << 20  # more from each host, once all is to end: who waits to write cannot save
EACH_BYTES = 100  # what a short line takes beside its text
PATIENCE_S = 15  # at the end, for output to be taken
HURRY_S = 2  # the same, if somebody asked for the end


class Writer:
    """Does tasks one after the other, in the order given.

    With `gather_s` it waits so long for more of one kind, and does them at once: a terminal whose
    bottom is drawn anew each time would cost too much.
    """

    def __init__(self, gather_s=0):
        self.gather_s = gather_s
        self.waiting = 0  # bytes, about, that are not written yet
        self._tasks = queue.SimpleQueue()
        self._lock = threading.Lock()
        threading.Thread(target=self._work, daemon=True).start()

    def put(self, task, text, *rest):
        """Have `task(text, *rest)` done; never waits."""
        self._count(len(text) + EACH_BYTES)
        self._tasks.put((task, text, rest))

    def close(self):
        """End the thread, after what was given so far."""
        self._tasks.put(None)

    def _count(self, change):
        with self._lock:
            self.waiting += change

    def _work(self):
        for first in iter(self._tasks.get, None):
            time.sleep(self.gather_s)
            for (task, rest), texts in self._gathered(first):
                task("".join(texts), *rest)
                self._count(-sum(map(len, texts)) - EACH_BYTES * len(texts))

    def _gathered(self, first):
        """Return this task, and with `gather_s` all that have come: texts by what is to be done."""
        found = []
        coming = [first]
        while coming:
            task, text, rest = coming.pop()
            if found and found[-1][0] == (task, rest):
                found[-1][1].append(text)
            else:
                found.append(((task, rest), [text]))
            if self.gather_s and not self._tasks.empty():
                following = self._tasks.get()
                if following is None:
                    self._tasks.put(None)  # the end, after these
                else:
                    coming.append(following)
        return found


def finish(writers, asked):
    """Wait until all is written, or nothing was taken for a while; return whether all is written.

    Once somebody wants the end, and `asked` is not empty, the wait is short, whatever is taken.
    """
    left, since = None, time.monotonic()
    while any(writer.waiting for writer in writers):
        before, left = left, sum(writer.waiting for writer in writers)
        if left != before and not asked:
            since = time.monotonic()
        if time.monotonic() - since > (HURRY_S if asked else PATIENCE_S):
            return False
        time.sleep(0.01)
    for writer in writers:
        writer.close()
    return True
