"""Asynchronous training: every worker's push updates the weights at once, and comes late."""

import math

import mxnet as mx

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


class AsyncTrainer(mx.gluon.Trainer):
    """A Trainer for ``dist_async`` that knows how stale its gradients were.

    A server keeps a counter of updates. In every step, a worker pushes its gradients, pulls the
    weights, adds 1 to the counter and reads it. The difference to its last reading, minus its own
    1, is the staleness of its gradients: so many updates of other workers came between the pull of
    the weights and the push of the gradients that were computed with them.

    Parameters
    ----------
    params : mxnet.gluon.ParameterDict
    optimizer : mxnet.optimizer.Optimizer
        It is sent to the servers once, with its learning rate or ``lr_scheduler``; changes made
        later do not reach them.
    store : mxnet.kvstore.KVStore
    """

    is_async = True
    lookahead = None  # the servers have the weights

    def __init__(self, params, optimizer, store):
        super().__init__(
            params, CountingOptimizer(optimizer), kvstore=store, update_on_kvstore=True
        )
        # The servers do not get the parameters, only their factors (--network fast has some).
        optimizer.lr_mult = {key: param.lr_mult for key, param in enumerate(self._params)}
        optimizer.wd_mult = {key: param.wd_mult for key, param in enumerate(self._params)}
        self._readings = []  # (counter, whether this worker added its 1 since the last reading)
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
        """Return the number of this worker's examples: its push alone is an update."""
        return max(batch.size, 1)

    def step(self, batch_size=1, ignore_stale_grad=False):
        """Push gradients, pull the newest weights; the servers update at every push.

        A worker without an example in a short last batch pushes nothing.
        """
        if zero_idle_gradients(self.learned):
            super().step(batch_size, ignore_stale_grad)
        mark_as_used(self.learned)  # MXNet itself does it only where the workers update

    def epoch_done(self, workers):
        """Pull the newest weights: other workers may have changed them since the last pull."""
        pull_weights(self, workers)
        self._read(mx.nd.zeros(1), own=0)
        workers.barrier()

    def measure_staleness(self, workers):
        """Return how late the gradients of all workers were since the last call.

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
        """Say which settings differ from ``asked``, {name: value}, because gradients come late."""
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
        # MXNet's engine works in the background. The 1 is computed from the weight that is pulled
        # last, so that the engine cannot send it before the pull.
        self._read(mx.nd.ones_like(self._pulled_last.list_data()[0]).reshape(-1)[:1], own=1)

    def _read(self, addend, own):
        """Add to the counter and ask for its value, without waiting for the answer."""
        self._readings.append((mx.nd.zeros(1), own))
        self._kvstore.pushpull(COUNTER_KEY, addend, out=self._readings[-1][0])


def pull_weights(trainer, workers):
    """Pull the newest weights from the servers, after all workers have pushed."""
    workers.barrier()
    for param in trainer.learned:
        trainer._kvstore.pull(trainer._param2idx[param.name], param.list_data())
