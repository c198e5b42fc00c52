"""The Trainer: gradients are added up over devices and workers, then every worker updates."""

from typing import Any, Dict, List, Mapping, Optional, Sequence, Union

from gluon_dist.exchange import optimizer_state
from gluon_dist.exchange.choice import check_compression, choose_exchange
from gluon_dist.exchange.exchange import Exchange, is_fresh, mark
from gluon_dist.exchange.optimizers import optimizer_class
from gluon_dist.workers import group

import mxnet as mx
import numpy as np

Params = Union[Mapping[str, mx.gluon.Parameter], Sequence[mx.gluon.Parameter]]


class Trainer(mx.gluon.Trainer):
    """A ``gluon.Trainer`` that is right on any number of devices and workers.

    All workers create it, and make the same calls. They begin with worker 0's weights. In each step
    the gradients of all of them are added up, and every worker makes the same update. So a rate
    that you change, a batch of another size and clipped gradients work as in one process. A worker,
    or a device, that had no example takes part with zeros.

    Parameters
    ----------
    params : ParameterDict, dict or list of Parameter
        Initialized: shapes may still be unknown.
    optimizer : str or mxnet.optimizer.Optimizer
        Its class may be your own.
    optimizer_params : dict, optional
        Such as ``{"learning_rate": 0.1, "lr_scheduler": ...}``.
    kvstore : str or mxnet.kvstore.KVStore, optional
        Default: that of :func:`gluon_dist.store`.
    compression_params : dict, optional
        ``{"type": "fp16"}``: gradients travel in 16 bits, both ways; ``{"type": "2bit",
        "threshold": 0.5}``: MXNet's, in 2 bits, one way. For synchronous stores.
    update_on_kvstore : bool, optional
        Leave it out: workers update, and with ``dist_async`` the servers.

    Raises
    ------
    ValueError
        If an argument asks for what this class does not do, or a parameter has sparse gradients.

    Notes
    -----
    ``step`` takes the number of examples of *all* workers. (Horovod's takes a worker's own, and
    MXNet's divides by whatever it is given.) Where the shapes of parameters are known, their
    gradients move when the Trainer is created, else in the first step: an array that you got from
    ``param.grad()`` before is not used any more.

    With ``dist_async`` every step of a worker updates the weights on the servers, without waiting
    for others. The optimizer is sent there once. There can be one such Trainer.

    Examples
    --------
    >>> import gluon_dist as gd
    >>> from mxnet import gluon
    >>> net = gluon.nn.Dense(1)
    >>> net.initialize()
    >>> trainer = gd.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
    >>> trainer.learning_rate
    0.1
    """

    unsaved: Optional[str] = None  # what collect_state leaves out, in words for the user

    def __new__(cls, params: Params, *args: object, **kwargs: object) -> "Trainer":
        """Choose the kind of Trainer that goes with the store."""
        from gluon_dist.exchange.asynchronous import AsyncTrainer

        store = args[2] if len(args) > 2 else kwargs.get("kvstore")
        is_async = cls is Trainer and group.workers_of(store).is_async
        return super().__new__(AsyncTrainer if is_async else cls)

    def __init__(
        self,
        params: Params,
        optimizer: Union[str, mx.optimizer.Optimizer],
        optimizer_params: Optional[Mapping[str, object]] = None,
        kvstore: Union[str, mx.kvstore.KVStore, None] = None,
        compression_params: Optional[Mapping[str, object]] = None,
        update_on_kvstore: Optional[bool] = None,
    ) -> None:
        self._workers = group.workers_of(kvstore)
        self._check(update_on_kvstore)
        check_compression(compression_params, self._workers)
        if isinstance(optimizer, str):
            kind = optimizer_class(optimizer, self._updates_there)
            optimizer, optimizer_params = kind(**(optimizer_params or {})), None
        store, there = self._workers.store, self._updates_there
        super().__init__(params, self._prepared(optimizer), optimizer_params, store, None, there)
        self._compression_params = compression_params
        ordered = params.values() if hasattr(params, "values") else params
        self._in_order = [param for param in ordered if param.grad_req != "null"]
        self.devices: List[mx.Context] = self._contexts
        self.params = self._params  # all, in the order of the optimizer's numbers
        # Those with gradients, in the same order.
        self.learned = [param for param in self._params if param.grad_req != "null"]
        if self._contains_sparse_grad or self._contains_sparse_weight:
            sparse = next(
                p for p in self._params if p._grad_stype != "default" or p._stype != "default"
            )
            raise ValueError(
                f"{sparse.name}: sparse gradients or weights: leave out sparse_grad=True"
            )
        self.first_numbers = optimizer_state.numbers_of(self._optimizer)
        self.exchange = Exchange()  # until shapes are known
        self._ignores_stale, self._is_connected = False, False
        self._share_weights()
        if self._connects_early and not any(param._deferred_init for param in self._params):
            self._connect()

    _updates_there = False  # the servers
    _connects_early = True  # before the first step, if shapes are known

    def _check(self, update_on_kvstore: Optional[bool]) -> None:
        if self._workers.is_async:
            raise ValueError("dist_async: create gluon_dist.Trainer itself, not a class of it")
        if update_on_kvstore:
            raise ValueError("update_on_kvstore=True: here workers update: leave it out")

    def _prepared(self, optimizer):
        """Return the optimizer that MXNet's Trainer gets."""
        return optimizer

    def _choose_exchange(self) -> Exchange:
        """Return the way in which gradients are added up; once, with the weights there."""
        return choose_exchange(
            self._workers, self.devices, self._in_order, self._compression_params
        )

    @property
    def loss_scale(self) -> float:
        """The factor of ``amp.scale_loss``, which keeps small gradients of float16 above zero."""
        scaler = getattr(self, "_amp_loss_scaler", None)
        return float(scaler.loss_scale) if scaler else 1.0

    def step(self, batch_size: float, ignore_stale_grad: bool = False) -> None:
        """Add up the gradients of a batch over devices and workers, and update the weights.

        Parameters
        ----------
        batch_size : float
            Examples of all workers in this step, by which the sums are divided; 1 if the loss was
            divided before. It may change from step to step.
        ignore_stale_grad : bool
            Leave parameters as they are that backward has reached on no device of any worker.
        """
        self._ignores_stale = ignore_stale_grad
        self.exchange.rescale = self._scale / batch_size
        try:
            super().step(batch_size, ignore_stale_grad)
        finally:
            self._ignores_stale = False
        self._mark_as_used()

    def update(self, batch_size: float, ignore_stale_grad: bool = False) -> None:
        """Update the weights, after ``allreduce_grads`` and what you did with the sums.

        Parameters
        ----------
        batch_size : float
            As of :meth:`step`.
        ignore_stale_grad : bool
            Only without other workers: with them, :meth:`step` agrees on what is stale.
        """
        if ignore_stale_grad and self._workers.count > 1:
            raise ValueError("update(ignore_stale_grad=True) with several workers: use step()")
        super().update(batch_size, ignore_stale_grad)
        self.exchange.rescale = self._scale / batch_size
        self._mark_as_used()

    def pull_weights(self) -> None:
        """Get the newest weights before an evaluation. All workers make this call.

        With ``dist_async`` others move them on the servers; else there is nothing to do.
        """

    def measure_staleness(self) -> Dict[str, float]:
        """Return how late the gradients of all workers were since the last call.

        Returns
        -------
        dict
            ``staleness_mean`` and ``staleness_max``, in updates by other workers; empty if no
            gradient comes late.
        """
        return {}

    def explain(self) -> List[str]:
        """Return lines for the user on how gradients are added up."""
        return self.exchange.explain()

    def collect_state(self, names: Optional[List[str]] = None) -> Any:
        """Return what a checkpoint needs besides the weights, to continue the training.

        Parameters
        ----------
        names : list of str, optional
            For the parameters, in the Trainer's order; default: their own.

        Returns
        -------
        facts : dict or None
            Plain numbers, for JSON; None if there is nothing to save.
        arrays : dict of NDArray
            Copies on the CPU that do not change any more; MXNet may still be copying them.
        """
        return optimizer_state.collect(self, names)

    def restore_state(
        self, facts: Any, arrays: Mapping[str, np.ndarray], names: Optional[List[str]] = None
    ) -> None:
        """Restore what :meth:`collect_state` returned, before the first step, on every device.

        The arrays are NumPy's here. What another optimizer has saved is ignored.
        """
        if facts and facts["name"] == type(self.optimizer).__name__:
            optimizer_state.restore(self, facts, arrays, names)

    def _share_weights(self):
        """Give all workers worker 0's weights, now or as soon as their shapes are known.

        MXNet's Trainer does it in its first step, when gradients of other weights are there.
        """
        if self._workers.count == 1:
            return
        for param in self._params:
            if param._deferred_init:
                param._init_impl = and_then(param._init_impl, self._share, [param])
        self._share([param for param in self._params if not param._deferred_init])

    def _share(self, params):
        if not params:
            return
        arrays = [param.list_data()[0].asnumpy() for param in params]
        content, start = self._from_first(b"".join(array.tobytes() for array in arrays)), 0
        for param, array in zip(params, arrays):
            stop = start + array.nbytes
            values = np.frombuffer(content[start:stop], array.dtype).reshape(array.shape)
            start = stop
            for data in param.list_data():
                data[:] = mx.nd.array(values, dtype=array.dtype)

    def _from_first(self, content):
        """Give every worker the bytes of worker 0, all of one length, by the first value of a key.

        So they travel once to the servers and once to each worker.
        """
        key, store = self._workers.take_keys(1), self._workers.store
        filled = content + bytes(-len(content) % 4)
        buffer = mx.nd.array(np.frombuffer(filled, np.float32), dtype="float32")
        store.init(key, buffer)
        store.pull(key, out=buffer)
        return buffer.asnumpy().tobytes()

    def _require_shapes(self):
        waiting = [param.name for param in self._params if param._deferred_init]
        if waiting:
            raise ValueError(
                f"{waiting[0]}: its shape is not known yet, as this worker has had no example: say "
                "in_units, in_channels"
            )

    def _connect(self):
        self._require_shapes()
        self._init_kvstore()
        rescale, self.exchange = self.exchange.rescale, self._choose_exchange()
        self.exchange.rescale = rescale
        self.exchange.move_gradients(self._in_order)
        self.exchange.connect(self._workers)
        self._is_connected = True

    def _init_kvstore(self):
        """Note which store there is; called by MXNet's Trainer, too."""
        alone = self._workers.count == 1 and len(self.devices) == 1
        self._kvstore = None if alone else self._workers.store
        self._distributed = self._workers.count > 1
        self._update_on_kvstore, self._kv_initialized = False, True

    def _init_params(self):
        if not self._is_connected:
            self._connect()
        self._params_to_init = []

    def _allreduce_grads(self):
        """Add up; called by step and allreduce_grads of MXNet's Trainer."""
        self._settle_freshness()
        self.exchange.add_up()

    def _settle_freshness(self):
        """Let devices without an example take part with zeros, and agree on what is stale."""
        if not self._ignores_stale:
            zero_idle_gradients(self.learned)
            return
        reached = np.array([any(is_fresh(param)) for param in self.learned], np.float32)
        anywhere = self._workers.all_reduce(reached) > 0
        for param, is_reached in zip(self.learned, anywhere):
            for data, grad in zip(param.list_data(), param.list_grad()):
                if not data._fresh_grad:
                    grad[:] = 0
            mark(param, [bool(is_reached)] * len(self.devices))

    def _mark_as_used(self):
        """Take the mark away from fresh gradients: MXNet does not where ``amp`` skips an update."""
        for param in self.learned if self.loss_scale != 1 else ():
            mark(param, [False] * len(self.devices))


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


def backward(losses: Sequence[mx.nd.NDArray]) -> None:
    """Compute the gradients of some losses; nothing where a worker had no example.

    Parameters
    ----------
    losses : list of NDArray
        One for each device that had examples, as recorded; ``[]`` is no mistake.
    """
    if losses:
        mx.autograd.backward(list(losses))


def and_then(function, following, *arguments):
    """Return a function that calls one, and then another with these arguments."""

    def both(*args, **kwargs):
        function(*args, **kwargs)
        following(*arguments)

    return both
