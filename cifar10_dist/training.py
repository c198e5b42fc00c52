"""One step, one epoch, one evaluation: the heart of the lesson."""

from collections import deque

import mxnet as mx
import numpy as np
from mxnet import autograd
from mxnet.contrib import amp
from mxnet.gluon import HybridBlock
from mxnet.gluon.utils import split_and_load
from networks.by_name import starts_with_batchnorm
from workers import average_statistics

STEPS_AHEAD = 2  # that Python may queue before MXNet has computed them


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


def forward_backward(net, loss, data, label, batch_size, trainer=None):
    """Compute the gradients of one batch, each device those of its part.

    The losses are divided by ``batch_size`` here, so that sums over devices and workers are the
    gradient of the mean loss for any size of batch, and ``trainer.step(1)`` has nothing to divide.

    Parameters
    ----------
    net, loss : mxnet.gluon.HybridBlock
    data, label : list of NDArray
        Parts of shape (n_i, C, H, W) and (n_i,), one for each device.
    batch_size : int
        Examples of all devices of all workers.
    trainer : mxnet.gluon.Trainer, optional
        Needed with ``--dtype float16``: it holds the factor that keeps small gradients above zero.

    Returns
    -------
    outputs : list of NDArray, shape (n_i, classes)
    """
    if starts_with_batchnorm(net):
        # MXNet moves the running mean and variance in the backward pass, which does not reach a
        # layer that has nothing to learn, unless the images themselves ask for a gradient.
        for x in data:
            x.attach_grad()
    with autograd.record():
        outputs = [net(x) for x in data]
        losses = [loss(out, y) / batch_size for out, y in zip(outputs, label)]
        if hasattr(trainer, "_amp_loss_scaler"):
            with amp.scale_loss(losses, trainer) as losses:
                autograd.backward(losses)
            return outputs
    autograd.backward(losses)
    return outputs


def train_batch(batch, net, loss, trainer, ctx, is_async=False):
    """Take one step: split the batch over the devices, compute gradients, add up, update.

    A device without an example in a short last batch takes part with gradients of zero: the
    servers wait for all workers, and all devices must make the same update.

    Parameters
    ----------
    batch : loader.Batch
    ctx : list of mxnet.Context
        The devices of this worker.
    is_async : bool
        Whether each worker's push is an update of its own, and divided by its own batch.

    Returns
    -------
    outputs, labels : list of NDArray
        On each device that had examples.
    """
    num_examples = 0 if batch.data is None else len(batch.data)
    busy = ctx[:num_examples]
    data, labels = _split(batch, ctx)
    outputs = []
    if busy:
        size = num_examples if is_async else batch.global_size
        outputs = forward_backward(net, loss, data, labels, size, trainer)
    for device in ctx[num_examples:]:
        _zero_gradients(net, device)
    if busy or not is_async:
        trainer.step(1)
    return outputs, labels


def train_epoch(
    epoch,
    loader,
    net,
    loss,
    trainer,
    ctx,
    progress,
    schedule=None,
    first_step=0,
    seeds=None,
    stopper=None,
):
    """Train on every batch of an epoch, and report to ``progress``.

    Without ``schedule`` the training is asynchronous and the servers keep the learning rate.

    Parameters
    ----------
    first_step : int
        Steps that are done already, in a resumed training.
    seeds : seeding.Seeds, optional
        For a network that draws random numbers while it trains.
    stopper : stopping.Stopper, optional
        Asked after every step.

    Returns
    -------
    int
        Finished steps of the epoch: all, unless ``stopper`` said to stop.
    """
    is_async = schedule is None
    begin = seeds.begin(first_step) if seeds else first_step
    queued = deque()
    for step, batch in enumerate(loader.epoch(epoch, begin), begin):
        if seeds:
            seeds.step(epoch, step)
        if step < first_step:  # only draw the numbers that the stopped training drew
            with autograd.record():
                for part in _split(batch, ctx)[0]:
                    net(part)
            continue
        if not is_async:
            number = epoch * len(loader) + step + 1
            trainer.begin_step(number, schedule(number))
        outputs, labels = train_batch(batch, net, loss, trainer, ctx, is_async)
        progress.batch_done(epoch, step, batch, outputs, labels)
        queued.append(outputs)  # a request to stop waits for all of these, and they take memory
        if len(queued) > STEPS_AHEAD:
            for out in queued.popleft():
                out.wait_to_read()
        if stopper and stopper.should_stop():
            return step + 1
    return len(loader)


def evaluate(loader, net, ctx, workers, top_k=0, flip=False):
    """Measure the network on a test set that the workers share, each example counted once.

    Parameters
    ----------
    loader : iterable of loader.Batch
        This worker's share of the test set.
    workers : workers.Workers
    top_k : int
        Also count an example as right whose label is among the ``top_k`` first; 0 for no.
    flip : bool
        Whether to add the scores of each image and its mirror image, and halve them.

    Returns
    -------
    dict
        ``accuracy`` and ``top_k_accuracy`` in [0, 1], ``loss`` (mean cross-entropy, nats) and
        ``num_examples``, the same on every worker.
    """
    average_statistics(net, workers)
    counts = np.zeros(4)  # right, right among the first k, loss, examples
    for batch in loader:
        data, labels = _split(batch, ctx)
        outputs = [net(x) for x in data]
        if flip:
            outputs = [(out + net(x.flip(axis=3))) / 2 for out, x in zip(outputs, data)]
        for output, label in zip(outputs, labels):
            counts += _count(output.astype("float32"), label, top_k)
    right, right_top_k, loss, num_examples = workers.sum(counts)
    result = {"accuracy": right / num_examples, "loss": loss / num_examples}
    if top_k:
        result["top_k_accuracy"] = right_top_k / num_examples
    return dict(result, num_examples=int(num_examples))


def pull_weights(net, trainer, workers):
    """Fetch the newest weights, which in asynchronous training other workers have moved since."""
    workers.barrier()
    for key, param in enumerate(trainer._params):
        if param.grad_req != "null":
            trainer._kvstore.pull(key, param.list_data())
    trainer.weights_pulled()
    workers.barrier()


def _split(batch, ctx):
    """Split a batch over the devices, of which a short one leaves some out."""
    busy = ctx[: 0 if batch.data is None else len(batch.data)]
    if not busy:
        return [], []
    return tuple(split_and_load(x, busy, even_split=False) for x in (batch.data, batch.label))


def _count(output, label, top_k):
    """Count right answers, right among the first k, summed loss and examples of one device."""
    right = (output.argmax(axis=1) == label).sum()
    # In float32, MXNet's log_softmax is wrong by 4e-6 on a CPU: much, where a loss is small.
    loss = -mx.nd.pick(mx.nd.log_softmax(output.astype("float64")), label).sum()
    among = mx.nd.zeros(1)
    if top_k:
        among = (output.topk(k=top_k) == label.expand_dims(1)).sum()
    return [v.asscalar() for v in (right, among, loss)] + [len(label)]


def _zero_gradients(net, device):
    """Let a device without examples take part in the sum and in the update."""
    for param in net.collect_params().values():
        if param.grad_req != "null":
            param.grad(device)[:] = 0
            param.data(device)._fresh_grad = True  # else the Trainer refuses the update
