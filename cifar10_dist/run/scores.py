"""How well the examples of an epoch are learned, counted as they are trained."""

from typing import NamedTuple

import mxnet as mx

EARLY_STEPS = 100  # each moves BatchNorm's running averages by a tenth
FAR = 0.3  # between the accuracies of the training and of the test


class Counts(NamedTuple):
    """What is added up over examples.

    Attributes
    ----------
    right, right_top_k : float
        Examples whose label is first, and among the first k.
    loss : float
        Summed, in nats.
    examples : float
    """

    right: float = 0.0
    right_top_k: float = 0.0
    loss: float = 0.0
    examples: float = 0.0


class Scores:
    """Counts the right answers of this worker, and adds up the losses.

    Parameters
    ----------
    with_loss : bool
    top_k : int
        Also count the examples whose label is among the ``top_k`` first; 0 for no.

    Attributes
    ----------
    counts : Counts
        Of the epoch, up to the last :meth:`collect`. What is not asked for is 0.
    """

    def __init__(self, with_loss, top_k=0):
        self._top_k = top_k
        self._loss = mx.gluon.loss.SoftmaxCrossEntropyLoss() if with_loss else None
        self.begin()

    def begin(self):
        """Begin an epoch."""
        self.counts = Counts()
        self._forget()

    def add(self, outputs, labels):
        """Take the scores and labels of a batch, of each device."""
        self._examples += sum(len(y) for y in labels)
        # Kept on the devices: reading a number here would make every step wait for the last, and
        # adding them up there would wait for a working memory that updates may hold.
        self._right += [out.argmax(axis=1) == y for out, y in zip(outputs, labels)]
        if self._loss:
            self._losses += [self._loss(out, y).sum() for out, y in zip(outputs, labels)]
        if self._top_k:
            best = (out.astype("float32").topk(k=self._top_k) for out in outputs)
            self._right_top_k += [k == y.expand_dims(1) for k, y in zip(best, labels)]

    def collect(self):
        """Return the :class:`Counts` since the last call, and add them to those of the epoch."""
        summed = [
            sum(float(part.asnumpy().sum()) for part in parts)
            for parts in (self._right, self._right_top_k, self._losses)
        ]
        new = Counts(*summed, self._examples)
        self.counts = Counts(*map(sum, zip(self.counts, new)))
        self._forget()
        return new

    def _forget(self):
        self._examples, self._right, self._right_top_k, self._losses = 0, [], [], []


def is_test_early(counts, tested, num_steps):
    """Return whether the first test is far below the first epoch, after few steps.

    Nothing can be learned by heart in that epoch: each example is counted before it is learned.
    """
    trained = counts.right / max(counts.examples, 1)
    return num_steps <= EARLY_STEPS and trained - tested > FAR
