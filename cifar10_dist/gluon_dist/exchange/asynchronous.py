"""Asynchronous training: every worker's push updates the weights at once, and comes late."""

from gluon_dist.exchange.freshness import is_fresh, zero_idle_gradients, zero_unmarked
from gluon_dist.exchange.server_optimizer import COUNTER_KEY, CountingOptimizer
from gluon_dist.exchange.trainer import Trainer

import mxnet as mx


class AsyncTrainer(Trainer):
    """The Trainer of ``dist_async``, which knows how stale its gradients were.

    A step pushes gradients, pulls the weights, adds 1 to a counter on a server and reads the
    counter. Between two readings a worker computes gradients with the weights that it pulled, and
    pushes them. The difference of the readings, minus the worker's own 1, is the number of updates
    that others made meanwhile. It is the staleness of these gradients.

    The optimizer is sent to the servers once, with its learning rate or ``lr_scheduler``; changes
    made later do not reach them. Parameters are those of :class:`Trainer`.
    """

    unsaved = (
        "dist_async: the servers' optimizer state (momenta and the like) cannot be read "
        "and is not in the checkpoints; a resumed run begins it anew"
    )
    _updates_there = True
    _connects_early = False  # what the servers have cannot be replaced: a checkpoint comes before

    def __init__(self, *args, **kwargs):
        self._stale = ()  # parameters that this step does not push
        self._readings = []  # (counter, whether this worker added its 1 since the last reading)
        self._last_reading = 0
        super().__init__(*args, **kwargs)
        self._pulled_last = ([p for p in self.learned if len(p.shape) == 1] or self._params)[-1]

    def _check(self, update_on_kvstore):
        if update_on_kvstore is False:
            raise ValueError(
                "update_on_kvstore=False: with dist_async servers update: leave it out"
            )
        if self._workers.take_keys(0):
            raise ValueError("dist_async: its servers have one optimizer, of the first Trainer")

    def _prepared(self, optimizer):
        return CountingOptimizer(optimizer)

    @property
    def learning_rate(self):
        """The rate of the last update that this worker knows of."""
        inner = self._optimizer.inner
        if inner.lr_scheduler is None:
            return inner.lr
        return inner.lr_scheduler(max(self._last_reading, 1))

    def set_learning_rate(self, lr):
        """Refuse it: the servers have the rate."""
        raise ValueError("dist_async: the servers have the learning rate: use an lr_scheduler")

    def step(self, batch_size, ignore_stale_grad=False):
        """Push gradients, pull the newest weights; the servers update at every push.

        A worker without an example in a short last batch pushes nothing. ``batch_size`` is divided
        by the number of workers: each push is an update of its own, of its share of the examples.
        """
        if hasattr(self, "_amp_loss_scaler"):
            raise ValueError("dist_async: its servers do not know how amp scales the loss")
        if not self._is_connected:
            self._connect()
        # A stale gradient is of an earlier step, and would be pushed again.
        self._stale = [p for p in self.learned if ignore_stale_grad and not any(is_fresh(p))]
        if ignore_stale_grad:
            zero_unmarked(self.learned)
        if zero_idle_gradients(self.learned):
            factor = self._workers.count / batch_size
            for grad in (g for param in self.learned for g in param.list_grad()):
                if factor != 1:
                    grad *= factor
            mx.gluon.Trainer.step(self, 1, ignore_stale_grad)
        self._mark_as_used()

    def allreduce_grads(self):
        """Refuse it: servers update at every push."""
        raise ValueError("dist_async: workers do not see sums of gradients: use step()")

    def update(self, batch_size, ignore_stale_grad=False):
        """Refuse it: servers update at every push."""
        raise ValueError("dist_async: servers update: use step()")

    def pull_weights(self):
        """Pull the newest weights from the servers, once all workers have pushed."""
        if not self._is_connected:
            return
        self._workers.barrier()
        for param in self.learned:
            self._kvstore.pull(self._param2idx[param.name], param.list_data())
        self._read(mx.nd.zeros(1), own=0)
        self._workers.barrier()

    def measure_staleness(self):
        """Compute the staleness of the steps since the last call from their readings."""
        late = []
        for reading, own in self._readings:
            count = int(reading.asscalar())
            if own:
                late.append(count - self._last_reading - 1)
            self._last_reading = count
        self._readings = []
        rows = self._workers.all_gather([sum(late), len(late), max(late, default=0)])
        total, steps, _ = rows.sum(axis=0)
        return {"staleness_mean": total / max(steps, 1), "staleness_max": int(rows[:, 2].max())}

    def collect_state(self, names=None):
        """Return nothing: the servers have the state."""
        return None, {}

    def restore_state(self, facts, arrays, names=None):
        """Give the servers the weights of the checkpoint; their optimizer begins anew.

        Not in the first step: a worker may have no step left of this epoch.
        """
        if not self._is_connected:
            self._connect()

    def _connect(self):
        """Give the servers the optimizer and the weights."""
        self._require_shapes()
        # They do not get the parameters, only their factors (--network fast has some).
        inner, numbered = self._optimizer.inner, list(enumerate(self._params))
        inner.lr_mult = {key: param.lr_mult for key, param in numbered}
        inner.wd_mult = {key: param.wd_mult for key, param in numbered}
        mx.gluon.Trainer._init_kvstore(self)  # sends the optimizer
        self._kvstore = self._workers.own_store
        self._workers.collectives.note_server_optimizer()
        self._kvstore.init(COUNTER_KEY, mx.nd.zeros(1))
        mx.gluon.Trainer._init_params(self)
        mx.nd.waitall()
        self._is_connected = True

    def _share_weights(self):
        self._workers.take_keys(len(self._params))  # the first: MXNet's Trainer counts from 0
        super()._share_weights()

    def _from_first(self, content):
        return self._workers.broadcast(content)

    def _init_kvstore(self):
        self._connect()

    def _allreduce_grads(self):
        for key, param in enumerate(self._params):
            if param in self._stale:
                self._kvstore.pull(key, param.list_data(), priority=-key)
            elif param.grad_req != "null":
                # MXNet would also pull the weights into what is pushed: see setup/order.py.
                grads, weights = [g.copy() for g in param.list_grad()], param.list_data()
                self._kvstore.pushpull(key, grads, out=weights, priority=-key)
        # MXNet's engine works in the background. The 1 is computed from the weight that is pulled
        # last, so that the engine cannot send it before the pull.
        self._read(mx.nd.ones_like(self._pulled_last.list_data()[0]).reshape(-1)[:1], own=1)

    def _mark_as_used(self):
        for param in self.learned:  # MXNet itself does it only where the workers update
            for data in param.list_data():
                data._fresh_grad = False

    def _read(self, addend, own):
        """Add to the counter and ask for its value, without waiting for the answer."""
        self._readings.append((mx.nd.zeros(1), own))
        self._kvstore.pushpull(COUNTER_KEY, addend, out=self._readings[-1][0])
