"""The worker that all others wait for, found in what their steps take."""

import numpy as np

LEAST_STEPS = 30  # to judge by
LEAST_S = 5  # of the slow worker's steps: another program may hold a processor for a moment
LEAST_RATIO = 1.3  # of what three quarters of its steps take at least, to the others' median


class SlowWorker:
    """Finds out whether one worker takes much longer than the others for a step.

    It is told once, and again if it becomes another worker.
    """

    def __init__(self):
        self._steps, self._told = [], None

    def add(self, seconds):
        """Take what further steps took, as many on all workers; describe all that are not judged.

        Returns
        -------
        list of float
            Seconds of this worker's steps: lower quartile, median and sum; zeros if there are none.
        """
        self._steps.extend(seconds)
        return [*np.percentile(self._steps or [0], [25, 50]), sum(self._steps)]

    def judge(self, rows):
        """Return a line about a worker that is slow and was not told before, else None.

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
        others = np.median(np.delete(medians, slow))
        if low[slow] <= LEAST_RATIO * others or slow == self._told:
            return None
        self._told = slow
        return (
            f"worker {slow} takes {medians[slow] / others:.1f} times as long as the others for a "
            "step: all wait for it"
        )
