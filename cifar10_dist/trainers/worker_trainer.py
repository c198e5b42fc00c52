"""The Trainer of synchronous training: gradients are added up, then every worker updates."""

from trainers import optimizer_state
from trainers.base import JobTrainer


class Exchange:
    """How gradients are added up over devices and workers.

    This class is for one device and does nothing; other ways inherit from it.
    :class:`WorkerTrainer` calls the methods in this order.

    Attributes
    ----------
    loss_scale : float
        A power of two that all gradients are larger by while they are exchanged.
    """

    loss_scale = 1

    def move_gradients(self, params):
        """Place the gradients of a ParameterDict elsewhere; once, before the first backward."""

    def connect(self, store, first_key):
        """Prepare the kvstore, once; keys from ``first_key`` on are not in use."""

    def add_up(self):
        """Replace every gradient by its sum; called in every step."""

    def explain(self):
        """Return lines for the user on what this way does."""
        return []


class WorkerTrainer(JobTrainer):
    """A Trainer whose workers add up their gradients, then all make the same update.

    With MXNet's own Trainer the servers update. Then learning rates, a short last batch, float16
    and saved states fail on a ``dist`` store; here they work as on one machine.

    Parameters
    ----------
    params : mxnet.gluon.ParameterDict
        Initialized, in the order of the layers. The exchange may move their gradients.
    optimizer : mxnet.optimizer.Optimizer
    schedule : callable
        Takes the number of a step, from 1, and returns its learning rate.
    store : mxnet.kvstore.KVStore, optional
        Without it there is one device and nothing to add up.
    exchange : Exchange, optional
        How the gradients are added up.
    compression : dict, optional
        MXNet's ``compression_params``.
    steps_done : int
        Steps that were done before a restart. The optimizer's own count of updates can differ:
        float16 skips some, and smaller batches before a restart make more.
    lookahead : lookahead.Lookahead, optional
        Called after every step.
    """

    def __init__(
        self,
        params,
        optimizer,
        schedule,
        store=None,
        exchange=None,
        compression=None,
        steps_done=0,
        lookahead=None,
    ):
        super().__init__(params, optimizer, None, store, compression, update_on_kvstore=False)
        self._schedule, self._exchange = schedule, exchange or Exchange()
        self._steps_done, self._lookahead = steps_done, lookahead
        self._exchange.move_gradients(params)

    def step(self, batch_size=1, ignore_stale_grad=False):
        """Add the gradients up over all devices and workers, and update.

        A device without an example in a short last batch takes part with gradients of zero: all
        devices must make the same update.
        """
        self._steps_done += 1
        self.set_learning_rate(self._schedule(self._steps_done))
        zero_idle_gradients(self.learned)
        self._scale = 1 / self.loss_scale  # the Trainer multiplies gradients by it
        super().step(batch_size, ignore_stale_grad)
        if self.loss_scale != 1:
            mark_as_used(self.learned)  # MXNet does not where it skips an update
        if self._lookahead:
            self._lookahead.step(self._steps_done)

    @property
    def loss_scale(self):
        """The factor of float16, in which a network computes or gradients are sent; else 1."""
        return super().loss_scale * self._exchange.loss_scale

    def explain(self):
        """Say what the exchange of gradients does."""
        return self._exchange.explain()

    def collect_state(self):
        """Return the state of the optimizer and the average of the weights."""
        return optimizer_state.collect(self, self._lookahead)

    def restore_state(self, facts, arrays):
        """Put back what an optimizer of the same name has saved, on every device."""
        if facts and facts["name"] == type(self.optimizer).__name__:
            optimizer_state.restore(self, self._lookahead, facts, arrays)

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
