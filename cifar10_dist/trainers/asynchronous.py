"""Asynchronous training: every worker's push updates the weights at once, and comes late."""

import math

import mxnet as mx

from trainers.base import JobTrainer
from trainers.server_optimizer import COUNTER_KEY, CountingOptimizer
from trainers.worker_trainer import mark_as_used, zero_idle_gradients


def allow_for_staleness(lr, momentum, num_workers):
    """Choose settings for gradients that come ``num_workers - 1`` updates late.

    In synchronous training one update averages the batches of N workers; here each worker's batch
    is an update of its own. So an update should move the weights N times less. (For optimizers
    without a momentum to set, such as Adam, the square root of N times less.) In the long run a
    gradient moves the weights by ``lr / (1 - momentum)``. The momentum is lowered first, because
    late updates act like momentum themselves: they continue in an old direction (Mitliagkas et
    al. 2016, arXiv 1605.09774). If momentum 0 is not enough, the rate is lowered, too.

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


def explain_staleness(asked, chosen, num_workers):
    """Return lines that say which of the optimizer's options were not ``chosen`` as ``asked``."""
    changed = [
        f"{name.replace('_', ' ')} {chosen[name]:g} instead of {value:g}"
        for name, value in asked.items()
        if chosen.get(name, value) != value
    ]
    late = f"as the gradients of {num_workers} workers come late; --lr-scale none leaves them"
    return [f"dist_async: {', '.join(changed)}, {late}"] if changed else []


class AsyncTrainer(JobTrainer):
    """A Trainer for ``dist_async`` that knows how stale its gradients were.

    A step pushes gradients, pulls the weights, adds 1 to a counter on a server and reads the
    counter. Between two readings a worker computes gradients with the weights that it pulled, and
    pushes them. The difference of the readings, minus the worker's own 1, is the number of updates
    that others made meanwhile. It is the staleness of these gradients.

    Parameters
    ----------
    params : mxnet.gluon.ParameterDict
    optimizer : mxnet.optimizer.Optimizer
        It is sent to the servers once, with its learning rate or ``lr_scheduler``; changes made
        later do not reach them.
    store : mxnet.kvstore.KVStore
    explanation : list of str
        What :meth:`explain` returns.
    """

    unsaved = (
        "dist_async: the servers' optimizer state (momenta and the like) cannot be read "
        "and is not in the checkpoints; a resumed run begins it anew"
    )

    def __init__(self, params, optimizer, store, explanation=()):
        super().__init__(
            params, CountingOptimizer(optimizer), kvstore=store, update_on_kvstore=True
        )
        # The servers do not get the parameters, only their factors (--network fast has some).
        optimizer.lr_mult = {key: param.lr_mult for key, param in enumerate(self._params)}
        optimizer.wd_mult = {key: param.wd_mult for key, param in enumerate(self._params)}
        self._readings = []  # (counter, whether this worker added its 1 since the last reading)
        self._last_reading = 0
        self._explanation = list(explanation)
        self._pulled_last = ([p for p in self.learned if len(p.shape) == 1] or self._params)[-1]

    @property
    def learning_rate(self):
        """The rate of the last update that this worker knows of."""
        inner = self._optimizer.inner
        if inner.lr_scheduler is None:
            return inner.lr
        return inner.lr_scheduler(max(self._last_reading, 1))

    def loss_divisor(self, batch):
        """Return the number of this worker's examples: its push alone is an update."""
        return max(batch.size, 1)

    def step(self, batch_size=1, ignore_stale_grad=False):
        """Push gradients, pull the newest weights; the servers update at every push.

        A worker without an example in a short last batch pushes nothing.
        """
        if zero_idle_gradients(self.learned):
            super().step(batch_size, ignore_stale_grad)
        mark_as_used(self.learned)  # MXNet itself does it only where the workers update

    def pull_weights(self, workers):
        """Pull the newest weights from the servers, once all workers have pushed."""
        workers.barrier()
        for param in self.learned:
            self._kvstore.pull(self._param2idx[param.name], param.list_data())
        self._read(mx.nd.zeros(1), own=0)
        workers.barrier()

    def measure_staleness(self, workers):
        """Compute the staleness of the steps since the last call from their readings."""
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
        """Say which settings differ from the command line."""
        return self._explanation

    def _init_kvstore(self):
        super()._init_kvstore()
        self._kvstore.init(COUNTER_KEY, mx.nd.zeros(1))

    def _allreduce_grads(self):
        super()._allreduce_grads()
        # MXNet's engine works in the background. The 1 is computed from the weight that is pulled
        # last, so that the engine cannot send it before the pull.
        self._read(mx.nd.ones_like(self._pulled_last.list_data()[0]).reshape(-1)[:1], own=1)

    def _read(self, addend, own):
        """Add to the counter and ask for its value, without waiting for the answer."""
        self._readings.append((mx.nd.zeros(1), own))
        self._kvstore.pushpull(COUNTER_KEY, addend, out=self._readings[-1][0])
