"""The last line of a training."""

import time

from gluon_dist.common.messages import counted


class Summary:
    """Adds up what a training has done in this process.

    Parameters
    ----------
    num_workers : int
    """

    def __init__(self, num_workers):
        self._num_workers, self._began = num_workers, time.time()
        self._num_epochs, self._examples, self._seconds = 0, 0, 0.0
        self._best = None  # (accuracy, epoch)

    def trained(self, examples, seconds):
        """Count the examples of all workers in an epoch, and what their steps took."""
        self._examples += int(examples)
        self._seconds += seconds

    def epoch_done(self, epoch, accuracy):
        """Count an epoch; the accuracy is None if it was not tested."""
        self._num_epochs += 1
        if accuracy is not None and (self._best is None or accuracy > self._best[0]):
            self._best = accuracy, epoch

    def text(self, saved):
        """Return the sentence; ``saved`` is the newest checkpoint, or None."""
        seconds = time.time() - self._began
        words = f"trained {counted(self._num_epochs, 'epoch')} in {seconds:.0f} s"
        words += f" on {counted(self._num_workers, 'worker')}"
        if self._best:
            words += f": accuracy {self._best[0]:.3f} (best, epoch {self._best[1]})"
        words += f"; {self._examples / max(self._seconds, 1e-9):.0f} samples/s"
        place = f"saved: {saved}" if saved else "nothing was saved: --model-prefix PATH saves it"
        return f"{words}; {place}"
