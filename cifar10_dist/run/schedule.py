"""The learning rate, step by step.

The schedulers are MXNet's own: a new epoch's rate begins with its first update, and the last update
still has a rate above zero. GluonCV's use the same formulas, but are one update early and end with
two updates of rate zero. Also, the servers of ``dist_async`` unpickle the scheduler, and would have
to import GluonCV.
"""

import math

from mxnet.lr_scheduler import CosineScheduler, LRScheduler, MultiFactorScheduler, PolyScheduler

REFERENCE_BATCH = 256  # examples, as in Goyal et al. and in the published lesson


class ConstantScheduler(LRScheduler):
    """A warm-up, then always the base rate."""

    def __call__(self, num_update):
        """Return the rate of update ``num_update``, counted from 1."""
        if num_update < self.warmup_steps:
            return self.get_warmup_lr(num_update)
        return self.base_lr


class ResumedScheduler(LRScheduler):
    """The rest of a schedule after a restart, for servers that count from 1 again."""

    def __init__(self, schedule, updates_done):
        super().__init__(schedule.base_lr)
        self._schedule, self._updates_done = schedule, updates_done

    def __call__(self, num_update):
        """Return the rate of update ``num_update`` of this run, counted from 1."""
        return self._schedule(self._updates_done + num_update)


def scaled_learning_rate(lr, scale, update_size):
    """Adapt a rate to the batch it is used with.

    Parameters
    ----------
    lr : float
        For ``linear`` and ``sqrt``: the rate for updates of ``REFERENCE_BATCH`` examples.
    scale : {'none', 'sqrt', 'linear', 'staleness'}
        ``linear``: Goyal et al. 2017, arXiv 1706.02677. ``sqrt``: Krizhevsky 2014,
        arXiv 1404.5997; the usual choice for Adam. ``staleness`` changes nothing here, see
        :func:`staleness.allow_for_staleness`.
    update_size : int
        Examples in one update: the global batch; in asynchronous training one worker's batch.
    """
    ratio = update_size / REFERENCE_BATCH
    return lr * {"sqrt": math.sqrt(ratio), "linear": ratio}.get(scale, 1)


def create_schedule(kind, lr, steps_per_epoch, num_epochs, warmup_epochs=0, factor=0.1, at=()):
    """Create a scheduler, a function from the number of the update (from 1) to its rate.

    Parameters
    ----------
    kind : {'constant', 'step', 'cosine', 'onecycle'}
        ``step`` multiplies by ``factor`` after each epoch of ``at``. ``cosine`` falls to zero over
        the whole run (Loshchilov and Hutter 2017, arXiv 1608.03983). ``onecycle`` rises
        linearly during ``warmup_epochs``, then falls linearly to zero.
    lr : float
        The highest rate.
    steps_per_epoch : int
        Updates in an epoch: the steps; in asynchronous training the steps times the workers.
    num_epochs : int
    warmup_epochs : float
        Length of the warm-up, in which the rate rises linearly from zero.
    factor : float
        In (0, 1].
    at : sequence of int
        Epochs, increasing.

    Returns
    -------
    mxnet.lr_scheduler.LRScheduler
    """
    total = steps_per_epoch * num_epochs + 1  # so that the last update has a rate above zero
    common = {"base_lr": lr, "warmup_steps": round(warmup_epochs * steps_per_epoch)}
    if kind == "constant":
        return ConstantScheduler(**common)
    if kind == "step":
        return MultiFactorScheduler([epoch * steps_per_epoch for epoch in at], factor, **common)
    if kind == "cosine":
        return CosineScheduler(total, **common)
    return PolyScheduler(total, pwr=1, **common)
