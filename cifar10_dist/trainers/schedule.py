"""The learning rate, step by step.

The schedulers are MXNet's own, which give update 1 the first rate, reach a new epoch's rate with
its first update, and leave the last update a rate above zero; GluonCV's, made of the same formulas,
come one update early and end in two updates of rate zero. Besides, the servers of ``dist_async``
unpickle the scheduler, and would need all of GluonCV for it.
"""

import math

from mxnet.lr_scheduler import CosineScheduler, LRScheduler, MultiFactorScheduler, PolyScheduler

REFERENCE_BATCH = 256  # examples; of Goyal et al., and of the published lesson


class ConstantScheduler(LRScheduler):
    """The base rate, after the warm-up."""

    def __call__(self, num_update):
        """Return the rate of update ``num_update``, counted from 1."""
        if num_update < self.warmup_steps:
            return self.get_warmup_lr(num_update)
        return self.base_lr


class ResumedScheduler(LRScheduler):
    """A schedule whose first updates are done, for servers that count from 1 again."""

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
        With ``linear`` and ``sqrt``, chosen for updates of ``REFERENCE_BATCH`` examples.
    scale : {'none', 'sqrt', 'linear', 'staleness'}
        ``linear``: Goyal et al. 2017, arXiv 1706.02677. ``sqrt``: Krizhevsky 2014,
        arXiv 1404.5997; the usual choice for Adam. ``staleness`` has nothing to do with the batch,
        see :func:`asynchronous.allow_for_staleness`.
    update_size : int
        Examples in one update: the global batch, in asynchronous training one worker's.
    """
    ratio = update_size / REFERENCE_BATCH
    return lr * {"sqrt": math.sqrt(ratio), "linear": ratio}.get(scale, 1)


def create_schedule(kind, lr, steps_per_epoch, num_epochs, warmup_epochs=0, factor=0.1, at=()):
    """Create a scheduler, a function from the number of the update (from 1) to its rate.

    Parameters
    ----------
    kind : {'constant', 'step', 'cosine', 'onecycle'}
        ``step`` multiplies by ``factor`` after each epoch of ``at``. ``cosine`` falls to zero over
        the whole run (Loshchilov and Hutter 2017, arXiv 1608.03983). ``onecycle`` rises in a
        straight line during ``warmup_epochs`` and falls in one to zero.
    lr : float
        The highest rate.
    steps_per_epoch : int
        Updates in an epoch: steps, and in asynchronous training steps times workers.
    num_epochs : int
    warmup_epochs : float
        The rate rises from zero, in a straight line.
    factor : float
        In (0, 1].
    at : sequence of int
        Epochs, increasing.

    Returns
    -------
    mxnet.lr_scheduler.LRScheduler
    """
    total = steps_per_epoch * num_epochs + 1  # the last update still moves
    common = {"base_lr": lr, "warmup_steps": round(warmup_epochs * steps_per_epoch)}
    if kind == "constant":
        return ConstantScheduler(**common)
    if kind == "step":
        return MultiFactorScheduler([epoch * steps_per_epoch for epoch in at], factor, **common)
    if kind == "cosine":
        return CosineScheduler(total, **common)
    return PolyScheduler(total, pwr=1, **common)
