"""Straggler detection: the worker whose steps take longest."""

import numpy as np

LEAST_STEPS = 30  # before a worker is called slow
LEAST_S = 5  # seconds of its steps: another program may hold a processor for a moment
LEAST_RATIO = 1.3  # of its lower quartile to the median of the other workers' medians
RECOVERED_RATIO = 1.1  # below it, it is not slow any more


class SlowWorker:
    """Finds out whether one worker takes much longer than the other workers for a step.

    A slow worker is reported once, and once more when it is not slow any more.
    """

    def __init__(self):
        self._steps, self._reported = [], None

    def add(self, seconds):
        """Add seconds of further steps, as many on all workers; describe those not judged yet.

        Returns
        -------
        list of float
            Seconds of this worker's steps: lower quartile, median and sum; zeros if there are none.
        """
        self._steps.extend(seconds)
        return [*np.percentile(self._steps or [0], [25, 50]), sum(self._steps)]

    def judge(self, rows):
        """Return a line about a slow worker that is news, or about its end, else None.

        Parameters
        ----------
        rows : ndarray, shape (workers, 3)
            What :meth:`add` has returned on each worker, the same rows on all of them.
        """
        low, medians, sums = rows.T
        if len(self._steps) < LEAST_STEPS or sums.max() < LEAST_S:
            return None
        self._steps = []
        slow = int(low.argmax())
        usual = np.median(np.delete(medians, slow))  # of the other workers
        if low[slow] <= LEAST_RATIO * usual:
            reported, has_ended = self._reported, low[slow] <= RECOVERED_RATIO * usual
            if reported is None or not has_ended:
                return None
            self._reported = None
            return f"worker {reported} keeps up with the others again"
        if slow == self._reported:
            return None
        self._reported = slow
        return (
            f"worker {slow} takes {medians[slow] / usual:.1f} times as long as the others for a "
            "step: all wait for it"
        )
