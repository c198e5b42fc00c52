"""Straggler detection: the worker whose steps take longest."""

import numpy as np

LEAST_STEPS = 30  # before a worker is called slow
LEAST_S = 5  # seconds of its steps: another program may hold a processor for a moment
LEAST_RATIO = 1.3  # of its lower quartile to the median of the other workers' medians


class SlowWorker:
    """Finds out whether one worker takes much longer than the other workers for a step.

    A slow worker is reported once, and again after another worker has been.
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
        """Return a line about a slow worker that was not reported before, else None.

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
        if low[slow] <= LEAST_RATIO * usual or slow == self._reported:
            return None
        self._reported = slow
        return (
            f"worker {slow} takes {medians[slow] / usual:.1f} times as long as the others for a "
            "step: all wait for it"
        )
