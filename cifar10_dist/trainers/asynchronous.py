"""Asynchronous training: each push is an update of its own, and comes late."""

import math

import mxnet as mx

from trainers.server_optimizer import COUNTER_KEY, CountingOptimizer
from trainers.worker_trainer import mark_as_used, zero_idle_gradients


def allow_for_staleness(lr, momentum, num_workers):
    """Choose settings for gradients that come ``num_workers - 1`` updates late.

    The rules for batches (:func:`schedule.scaled_learning_rate`), the other way round: an update is
    made of one worker's batch here, so it may move the weights by less, by as many times as there
    are workers, or, with optimizers without a momentum to set, such as Adam, by the root of that.
    A gradient moves them by ``lr / (1 - momentum)`` in the long run. That is brought down by less
    momentum as long as there is any, for late updates that go on in an old direction are a momentum
    themselves (Mitliagkas et al. 2016, arXiv 1605.09774), then by a lower rate.

    Parameters
    ----------
    lr : float
    momentum : float or None
        None for an optimizer that has none to set.
    num_workers : int

    Returns
    -------
    lr, momentum
    """
    if momentum is None:
        return lr / math.sqrt(num_workers), None
    share = num_workers * (1 - momentum)
    return lr / max(share, 1), max(0.0, 1 - share)


class AsyncTrainer(mx.gluon.Trainer):
    """A Trainer for ``dist_async`` that knows how stale its gradients were.

    Each worker adds 1 to a counter on a server after it has pushed its gradients and pulled the
    weights, and reads it. What the counter rose by since the worker's last step, its own 1 left
    out, are the updates of others between its pull of the weights and the next one, just before
    which it pushed the gradients that it computed with them.

    Parameters
    ----------
    params : mxnet.gluon.ParameterDict
    optimizer : mxnet.optimizer.Optimizer
        With the learning rate, or the ``lr_scheduler``, that the servers are to use: nothing
        reaches them later.
    store : mxnet.kvstore.KVStore
    """

    is_async = True
    devices = property(lambda self: self._contexts)
    loss_scale = 1
    lookahead = None  # the weights are the servers'

    def __init__(self, params, optimizer, store):
        super().__init__(
            params, CountingOptimizer(optimizer), kvstore=store, update_on_kvstore=True
        )
        # To the servers go these, not the parameters that bear them (--network fast has some).
        optimizer.lr_mult = {key: param.lr_mult for key, param in enumerate(self._params)}
        optimizer.wd_mult = {key: param.wd_mult for key, param in enumerate(self._params)}
        self._readings = []  # the counter, and whether this worker's own 1 is in its rise
        self._last_reading = 0
        self.learned = [param for param in self._params if param.grad_req != "null"]
        self._pulled_last = ([p for p in self.learned if len(p.shape) == 1] or self._params)[-1]

    @property
    def learning_rate(self):
        """The rate of the last update that this worker knows of."""
        inner = self._optimizer.inner
        if inner.lr_scheduler is None:
            return inner.lr
        return inner.lr_scheduler(max(self._last_reading, 1))

    def loss_divisor(self, batch):
        """Return the number of this worker's examples: its push is an update of its own."""
        return max(batch.size, 1)

    def step(self, batch_size=1, ignore_stale_grad=False):
        """Push gradients, which the servers update with at once, and pull the newest weights.

        A worker without an example in a short last batch pushes nothing.
        """
        if zero_idle_gradients(self.learned):
            super().step(batch_size, ignore_stale_grad)
        mark_as_used(self.learned)  # MXNet does so only where workers update

    def epoch_done(self, workers):
        """Pull the newest weights, which other workers have moved since."""
        pull_weights(self, workers)
        self._read(mx.nd.zeros(1), own=0)
        workers.barrier()

    def measure_staleness(self, workers):
        """Tell how late the gradients of all workers were since the last call.

        Returns
        -------
        dict
            ``staleness_mean`` and ``staleness_max``, in updates by other workers.
        """
        late = []
        for reading, own in self._readings:
            count = int(reading.asscalar())
            if own:
                late.append(count - self._last_reading - 1)
            self._last_reading = count
        self._readings = []
        rows = workers.gather([sum(late), len(late), max(late, default=0)])
        total, steps, _ = rows.sum(axis=0)
        return {"staleness_mean": total / max(steps, 1), "staleness_max": int(rows[:, 2].max())}

    def explain(self):
        """Return nothing: see :meth:`explain_staleness`."""
        return []

    def explain_staleness(self, asked, num_workers):
        """Say which settings are not as ``asked``, name: value, as gradients come late."""
        inner = self._optimizer.inner
        now = {"learning rate": inner.lr, "momentum": getattr(inner, "momentum", asked["momentum"])}
        changed = [f"{n} {now[n]:g} instead of {asked[n]:g}" for n in asked if now[n] != asked[n]]
        if changed:
            yield (
                f"dist_async: {', '.join(changed)}, as the gradients of {num_workers} workers "
                "come late; --lr-scale none leaves them"
            )

    def _init_kvstore(self):
        super()._init_kvstore()
        self._kvstore.init(COUNTER_KEY, mx.nd.zeros(1))

    def _allreduce_grads(self):
        super()._allreduce_grads()
        # The 1 is made from a weight, so that MXNet's engine, which runs behind Python, does not
        # send it before that weight has been pulled.
        self._read(mx.nd.ones_like(self._pulled_last.list_data()[0]).reshape(-1)[:1], own=1)

    def _read(self, addend, own):
        """Add to the counter and read it, without waiting for it."""
        self._readings.append((mx.nd.zeros(1), own))
        self._kvstore.pushpull(COUNTER_KEY, addend, out=self._readings[-1][0])


def pull_weights(trainer, workers):
    """Fetch the newest weights, which in asynchronous training other workers have moved since."""
    workers.barrier()
    for param in trainer.learned:
        trainer._kvstore.pull(trainer._param2idx[param.name], param.list_data())
