"""The worker that all others wait for, found in what their steps take."""

import numpy as np

LEAST_STEPS = 30  # to judge by
LEAST_RATIO = 1.3  # of what three quarters of a worker's steps take at least, to the others' median


class SlowWorker:
    """Finds out whether one worker takes much longer than the others for a step.

    It is told once, and again if it becomes another worker.
    """

    def __init__(self):
        self._steps, self._told = [], None

    def quartiles(self, seconds):
        """Return what this worker's steps took since the last time it was known.

        Parameters
        ----------
        seconds : iterable of float
            What further steps took. The number of steps is the same on all workers.

        Returns
        -------
        ndarray, shape (2,)
            Lower quartile and median, in seconds; NaN as long as there are too few steps.
        """
        self._steps.extend(seconds)
        if len(self._steps) < LEAST_STEPS:
            return np.full(2, np.nan)
        steps, self._steps = self._steps, []
        return np.percentile(steps, [25, 50])

    def find(self, quartiles):
        """Return a line about a worker that is slow and was not told before, else None.

        Parameters
        ----------
        quartiles : ndarray, shape (workers, 2)
            What :meth:`quartiles` has returned on each worker.
        """
        if len(quartiles) == 1 or np.isnan(quartiles).any():
            return None
        low, medians = quartiles.T
        slow = int(low.argmax())
        others = np.median(np.delete(medians, slow))
        if low[slow] <= LEAST_RATIO * others or slow == self._told:
            return None
        self._told = slow
        return (
            f"worker {slow} takes {medians[slow] / others:.1f} times as long as the others for a "
            "step: all wait for it"
        )
