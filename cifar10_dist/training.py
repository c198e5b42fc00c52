"""One batch and one evaluation: the heart of the lesson."""

import gluon_dist as gd

import mxnet as mx
import numpy as np
from mxnet import autograd
from mxnet.gluon import HybridBlock
from mxnet.gluon.utils import split_and_load


class CrossEntropy(HybridBlock):
    """Softmax cross-entropy of each example, in nats, shape (n,).

    Parameters
    ----------
    smoothing : float
        Share of the target, in [0, 1), that is spread evenly over all classes (Szegedy et al.
        2016, arXiv 1512.00567, section 7).
    """

    def __init__(self, smoothing=0.0):
        super().__init__()
        self.smoothing = smoothing

    def hybrid_forward(self, F, output, label):
        """Take scores (n, classes) and labels (n,)."""
        log_p = F.log_softmax(output)
        hit = F.pick(log_p, label)
        if not self.smoothing:
            return -hit
        return -(1 - self.smoothing) * hit - self.smoothing * F.mean(log_p, axis=1)


def split_batch(batch, ctx):
    """Split a batch over the devices of this worker.

    Parameters
    ----------
    batch : loader.Batch
    ctx : list of mxnet.Context

    Returns
    -------
    data, labels : list of NDArray, shapes (n_i, C, H, W) and (n_i,)
        A part for each device; a batch with fewer examples leaves the last devices out.
    """
    busy = ctx[: batch.size]
    if not busy:
        return [], []
    data = split_and_load(batch.data, busy, even_split=False)
    labels = split_and_load(batch.label, busy, even_split=False)
    return data, labels


def forward_backward(net, loss, data, labels, divisor):
    """Compute the gradients of one batch, each device those of its part.

    The losses are divided by the size of the whole batch here. Gradients that are added up over
    devices and workers are then those of the mean loss, for a batch of any size, and
    ``trainer.step(1)`` has nothing left to divide. Backward writes gradients anew: there is nothing
    to set to zero before.

    Parameters
    ----------
    net, loss : mxnet.gluon.HybridBlock
    data, labels : list of NDArray, shapes (n_i, C, H, W) and (n_i,)
        A part for each device.
    divisor : float
        Examples of all devices of all workers; for float16 divided by its loss scale.

    Returns
    -------
    list of NDArray, shape (n_i, classes)
    """
    with autograd.record():
        outputs = [net(x) for x in data]
        losses = [loss(out, y) / divisor for out, y in zip(outputs, labels)]
    if losses:  # a short last batch may leave this worker without an example
        autograd.backward(losses)
    return outputs


def evaluate(loader, net, ctx, top_k=0):
    """Measure the network on a test set that the workers share, each example counted once.

    Average BatchNorm's statistics before (``gd.average_statistics``): else every device
    measures a network of its own.

    Parameters
    ----------
    loader : iterable of loader.Batch
        This worker's share of the test set.
    net : callable
        Takes images (n, C, H, W) to scores (n, classes).
    ctx : list of mxnet.Context
    top_k : int
        Also count an example as right whose label is among the ``top_k`` first; 0 for no.

    Returns
    -------
    dict
        ``accuracy`` and ``top_k_accuracy`` in [0, 1], ``loss`` (mean cross-entropy, nats) and
        ``num_examples``, the same on every worker.
    """
    counts = np.zeros(4)  # right, right among the first k, loss, examples
    for batch in loader:
        data, labels = split_batch(batch, ctx)
        outputs = [net(x) for x in data]
        for output, label in zip(outputs, labels):
            counts += _count(output.astype("float32"), label, top_k)
    right, right_top_k, loss, num_examples = gd.all_reduce(counts)  # of all workers
    result = {"accuracy": right / num_examples, "loss": loss / num_examples}
    if top_k:
        result["top_k_accuracy"] = right_top_k / num_examples
    return dict(result, num_examples=int(num_examples))


def _count(output, label, top_k):
    """Count right answers, right among the first k, summed loss and examples of one device."""
    right = (output.argmax(axis=1) == label).sum()
    # In float32, MXNet's log_softmax is wrong by 4e-6 on a CPU: much, where a loss is small.
    loss = -mx.nd.pick(mx.nd.log_softmax(output.astype("float64")), label).sum()
    among = mx.nd.zeros(1)
    if top_k:
        among = (output.topk(k=top_k) == label.expand_dims(1)).sum()
    return [v.asscalar() for v in (right, among, loss)] + [len(label)]
