"""The Trainer of synchronous training: gradients are added up, then every worker updates."""

import mxnet as mx


class Exchange:
    """How gradients are added up over devices and workers: for one device, not at all.

    Other ways inherit from this one.
    """

    def connect(self, store, first_key):
        """Prepare the kvstore, once; keys from ``first_key`` on are free."""

    def add_up(self):
        """Replace every gradient by its sum, in every step."""

    def explain(self):
        """Return lines for the user on what this way does."""
        return []


class WorkerTrainer(mx.gluon.Trainer):
    """A Trainer that updates on the workers, from gradients that all of them have added up.

    MXNet's own lets the servers update. Learning rates, a short last batch, float16 and saved
    states then fail on a ``dist`` store; here they work as on one machine.

    Parameters
    ----------
    params : mxnet.gluon.ParameterDict
        Initialized, in the order of the layers.
    optimizer : mxnet.optimizer.Optimizer
    schedule : callable
        Learning rate of a step, counted from 1.
    store : mxnet.kvstore.KVStore, optional
        Without it there is one device and nothing to add up.
    exchange : Exchange, optional
        How the gradients are added up.
    compression : dict, optional
        What MXNet calls ``compression_params``.

    Attributes
    ----------
    steps_done : int
        Of the whole training, with the steps before a restart. The optimizer's own count is of
        updates: float16 skips some, and a restart with larger batches has made more of them.
    lookahead : lookahead.Lookahead or None
        Told of every step.
    """

    is_async = False
    devices = property(lambda self: self._contexts)

    def __init__(self, params, optimizer, schedule, store=None, exchange=None, compression=None):
        super().__init__(params, optimizer, None, store, compression, update_on_kvstore=False)
        self.learned = [param for param in self._params if param.grad_req != "null"]
        self.steps_done, self.lookahead = 0, None
        self._schedule, self._exchange = schedule, exchange or Exchange()

    @property
    def loss_scale(self):
        """The factor that keeps small gradients of float16 above zero; 1 otherwise."""
        scaler = getattr(self, "_amp_loss_scaler", None)
        return scaler.loss_scale if scaler else 1

    def loss_divisor(self, batch):
        """Return what to divide the losses of a batch by, before backward.

        It is the number of examples of all workers. In float16 it is smaller by ``loss_scale``, by
        which :meth:`step` divides the gradients.
        """
        return batch.global_size / self.loss_scale

    def step(self, batch_size=1, ignore_stale_grad=False):
        """Add the gradients up over all devices and workers, and update.

        A device without an example in a short last batch takes part with gradients of zero: all
        devices must make the same update.
        """
        self.steps_done += 1
        self.set_learning_rate(self._schedule(self.steps_done))
        zero_idle_gradients(self.learned)
        self._scale = 1 / self.loss_scale  # the Trainer multiplies gradients by it
        super().step(batch_size, ignore_stale_grad)
        if self.loss_scale != 1:
            mark_as_used(self.learned)  # MXNet does not where it skips an update
        if self.lookahead:
            self.lookahead.step(self.steps_done)

    def epoch_done(self, workers):
        """Make the weights those that an evaluation should see: here they are already."""

    def measure_staleness(self, workers):
        """Return nothing: no gradient comes late."""
        return {}

    def explain(self):
        """Return lines for the user on what this way of training does."""
        return self._exchange.explain()

    def _init_params(self):
        super()._init_params()  # worker 0's weights for all
        self._exchange.connect(self._kvstore, first_key=len(self._params))

    def _allreduce_grads(self):  # called by step
        self._exchange.add_up()


def zero_idle_gradients(learned):
    """Set the gradients of devices that backward has not reached to zero.

    Parameters
    ----------
    learned : list of mxnet.gluon.Parameter
        Those with gradients.

    Returns
    -------
    int
        Devices that backward has reached: they had examples.
    """
    devices = range(len(learned[0].list_ctx()))
    # Backward marks the gradients that it writes as fresh, an update takes the mark away.
    idle = [i for i in devices if not any(param.list_data()[i]._fresh_grad for param in learned)]
    for param in learned:
        for i in idle:
            param.list_grad()[i][:] = 0
            param.list_data()[i]._fresh_grad = True  # else MXNet refuses the update
    return len(devices) - len(idle)


def mark_as_used(learned):
    """Take the mark away from gradients that backward has written: they are of the last step."""
    for param in learned:
        for data in param.list_data():
            data._fresh_grad = False
