"""How well the examples of an epoch are learned, counted as they are trained."""

import mxnet as mx
import numpy as np


class Scores:
    """Counts the right answers of this worker, and adds up the losses.

    Parameters
    ----------
    with_loss : bool
    top_k : int
        Also count the examples whose label is among the ``top_k`` first; 0 for no.

    Attributes
    ----------
    counts : ndarray, shape (4,)
        Of the epoch, up to the last :meth:`collect`: right, right among the first ``top_k``, summed
        loss (nats), and examples. The second and third are 0 if they are not asked for.
    """

    def __init__(self, with_loss, top_k=0):
        self._top_k = top_k
        self._loss = mx.gluon.loss.SoftmaxCrossEntropyLoss() if with_loss else None
        self.begin()

    def begin(self):
        """Begin an epoch."""
        self.counts = np.zeros(4)
        self._forget()

    def add(self, outputs, labels):
        """Take the scores and labels of a batch, of each device."""
        self._seen += sum(len(y) for y in labels)
        # Kept on the devices: reading a number here would make every step wait for the last, and
        # adding them up there would wait for a working memory that updates may hold.
        self._right += [out.argmax(axis=1) == y for out, y in zip(outputs, labels)]
        if self._loss:
            self._losses += [self._loss(out, y).sum() for out, y in zip(outputs, labels)]
        if self._top_k:
            best = (out.astype("float32").topk(k=self._top_k) for out in outputs)
            self._among += [k == y.expand_dims(1) for k, y in zip(best, labels)]

    def collect(self):
        """Add what came since the last call to ``counts``; return its examples, and the right."""
        right, among, loss = (
            sum(float(part.asnumpy().sum()) for part in parts)
            for parts in (self._right, self._among, self._losses)
        )
        seen = self._seen
        self.counts += right, among, loss, seen
        self._forget()
        return seen, right

    def _forget(self):
        self._seen, self._right, self._among, self._losses = 0, [], [], []
