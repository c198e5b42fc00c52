"""The Trainer: gradients are added up over devices and workers, then every worker updates."""

from typing import TYPE_CHECKING, Dict, List, Mapping, Optional, Tuple, Union

from gluon_dist.common import protocols
from gluon_dist.exchange import first_weights, optimizer_state
from gluon_dist.exchange.choice import check_compression, choose_exchange
from gluon_dist.exchange.exchange import Exchange, attach_gradients
from gluon_dist.exchange.freshness import (
    Marks,
    is_fresh,
    mark,
    zero_idle_gradients,
    zero_unmarked,
)
from gluon_dist.exchange.optimizers import optimizer_class
from gluon_dist.workers import group

import mxnet as mx
import numpy as np

if TYPE_CHECKING:  # NumPy has it from 1.21
    from numpy.typing import NDArray as Array


class Trainer(mx.gluon.Trainer):
    """A ``gluon.Trainer`` that is right on any number of devices and workers.

    All workers create it and make the same calls. They begin with the weights of worker 0. In each
    step the gradients of all workers are added up, and every worker makes the same update. So a
    learning rate that you change, a batch of another size and clipped gradients work as in one
    process. A worker or device without an example in a step takes part with zeros. (BatchNorm still
    normalizes by the examples of a device: with it results depend on the number of devices.)

    :meth:`step` takes the number of examples of *all* workers. Horovod's ``DistributedTrainer``
    takes those of one worker, as it averages over the workers before.

    Parameters
    ----------
    params : mxnet.gluon.ParameterDict, dict or list of Parameter
        Initialized. Shapes may still be unknown.
    optimizer : str or mxnet.optimizer.Optimizer
        Its name, or an object, also of a class of your own.
    optimizer_params : dict, optional
        Arguments for the optimizer that ``optimizer`` names: ``{"learning_rate": 0.1}``.
    kvstore : str or mxnet.kvstore.KVStore, optional
        Default: the store of this process, :func:`gluon_dist.store`.
    compression_params : dict, optional
        ``{"type": "fp16"}``: gradients travel in 16 bits, to the servers and back. ``{"type":
        "2bit", "threshold": 0.5}``: MXNet's compression, 2 bits to the servers only. Both need a
        synchronous store.
    update_on_kvstore : bool, optional
        Leave it out. Workers update the weights; with ``dist_async`` the servers do.

    Attributes
    ----------
    devices : list of mxnet.Context
        Where this worker has the parameters.

    Raises
    ------
    ValueError
        If an argument asks for what this class does not do, or if a parameter has sparse gradients.

    Notes
    -----
    Gradients are moved to new arrays when the Trainer is created, or in the first step if shapes
    are unknown until then. After that, an array that ``param.grad()`` returned before is not used
    any more. You may freeze and thaw parameters at any time by ``grad_req``.

    An ``Estimator`` divides by a worker's own examples. Give its ``fit`` this handler; it needs an
    example of every step on every device::

        class StepOfAll(GradientUpdateHandler):
            def batch_end(self, estimator, *args, loss, **kwargs):
                estimator.trainer.step(gd.all_reduce(sum(len(part) for part in loss)))

    With ``dist_async`` each step of a worker updates the weights on the servers, and does not wait
    for other workers. The optimizer is sent to the servers once. A job can have one such Trainer.

    Examples
    --------
    >>> net = mx.gluon.nn.Dense(1, in_units=1, use_bias=False)
    >>> net.initialize(mx.init.One())
    >>> trainer = gd.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.5})
    >>> with mx.autograd.record():
    ...     losses = [net(mx.nd.array([[1], [3]]))]  # 2 examples, and this is the only worker
    >>> gd.backward(losses)
    >>> trainer.step(2)  # the mean gradient is (1 + 3) / 2
    >>> float(net.weight.data().asscalar())  # 1 - 0.5 * 2
    0.0
    """

    unsaved: Optional[str] = None  # what collect_state leaves out, in words for the user

    def __new__(cls, params: protocols.Params, *args: object, **kwargs: object) -> "Trainer":
        """Choose the kind of Trainer that goes with the store."""
        from gluon_dist.exchange.asynchronous import AsyncTrainer

        store = args[2] if len(args) > 2 else kwargs.get("kvstore")
        is_async = cls is Trainer and group.workers_of(store).is_async
        return super().__new__(AsyncTrainer if is_async else cls)

    def __init__(
        self,
        params: protocols.Params,
        optimizer: Union[str, protocols.Optimizer],
        optimizer_params: Optional[Mapping[str, object]] = None,
        kvstore: Union[str, protocols.KVStore, None] = None,
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
        # All workers have this order of layers. Names, which Gluon numbers, may differ.
        self._ordered = list(ordered)
        self._in_order: List[protocols.Parameter] = []  # those that were ever learned
        self.devices: List[mx.Context] = self._contexts
        self._marks = Marks(self._params)
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
        self._batch_size: Optional[float] = None
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
    def learned(self) -> List[mx.gluon.Parameter]:
        """The parameters that have gradients now, in the order of the optimizer's numbers."""
        return [param for param in self._params if param.grad_req != "null"]

    @property
    def params(self) -> List[protocols.Parameter]:
        """The parameters, in the order of the optimizer's numbers."""
        return list(self._params)

    @property
    def loss_scale(self) -> float:
        """The factor of ``amp.scale_loss``; 1 without it.

        It keeps small gradients of float16 above zero.
        """
        scaler = getattr(self, "_amp_loss_scaler", None)
        return float(scaler.loss_scale) if scaler else 1.0

    def step(self, batch_size: float, ignore_stale_grad: bool = False) -> None:
        """Add up the gradients of a batch over devices and workers, and update the weights.

        Parameters
        ----------
        batch_size : float
            The number of examples of all workers in this step: the sums are divided by it. Pass 1
            if the loss is a mean over all workers. It may change from step to step.
        ignore_stale_grad : bool
            Do not update a parameter that ``backward`` reached on no device of any worker.

        Raises
        ------
        ValueError
            If a shape is still unknown, as this worker has had no example, or if sums of
            ``allreduce_grads`` wait for ``update``.
        UserWarning
            By MXNet, if ``backward`` did not reach a parameter and ``ignore_stale_grad`` is False.

        Notes
        -----
        The ``step`` of Horovod's ``DistributedTrainer`` takes the examples of one worker.
        """
        if self._marks.has_sums():
            self._marks.bring_back(with_sums=False)
            if not self._is_any_fresh():
                raise ValueError(
                    "after allreduce_grads() comes update(), not step(), which adds up again"
                )
        self._ignores_stale, self._batch_size = ignore_stale_grad, batch_size
        try:
            super().step(batch_size, ignore_stale_grad)
        finally:
            self._ignores_stale = False
        self._mark_as_used()

    def allreduce_grads(self) -> None:
        """Replace the gradients by their sums over devices and workers; :meth:`update` comes next.

        Between the two calls you may change the sums: all workers in the same way. Without an
        update they are dropped.
        """
        super().allreduce_grads()
        self._marks.note_sums()

    def update(self, batch_size: float, ignore_stale_grad: bool = False) -> None:
        """Update the weights by the sums of ``allreduce_grads``, which you may have changed.

        Parameters
        ----------
        batch_size : float
            As for :meth:`step`.
        ignore_stale_grad : bool
            As for :meth:`step`, but with one worker only.

        Raises
        ------
        ValueError
            If ``ignore_stale_grad`` is True and there are several workers.
        """
        if ignore_stale_grad and self._workers.count > 1:
            raise ValueError("update(ignore_stale_grad=True) with several workers: use step()")
        self._marks.bring_back(with_sums=True)
        super().update(batch_size, ignore_stale_grad)
        self._batch_size = batch_size
        self._mark_as_used()

    def pull_weights(self) -> None:
        """Get the newest weights, before an evaluation. All workers make this call.

        With ``dist_async`` the other workers change the weights on the servers. With other stores
        there is nothing to do.
        """

    def measure_staleness(self) -> Dict[str, float]:
        """Return how late the gradients of all workers were since the last call.

        All workers make this call.

        Returns
        -------
        dict of str to float
            ``staleness_mean`` and ``staleness_max``: the updates that other workers made between
            reading the weights and using the gradient. Empty with a synchronous store: nothing
            comes late.
        """
        return {}

    def explain(self) -> List[str]:
        """Return how gradients are added up, in lines of text for the user.

        Returns
        -------
        list of str
        """
        return self.exchange.explain()

    def collect_state(
        self, names: Optional[List[str]] = None
    ) -> Tuple[Optional[Dict[str, object]], Dict[str, mx.nd.NDArray]]:
        """Return what a checkpoint needs besides the weights.

        Parameters
        ----------
        names : list of str, optional
            Names for the parameters, in the order of the Trainer. Default: their own names.

        Returns
        -------
        facts : dict or None
            Numbers, texts and dicts of these, for JSON. None if there is nothing to save.
        arrays : dict of str to mxnet.nd.NDArray
            Copies on the CPU, which later steps do not change.
        """
        return optimizer_state.collect(self, names)

    def restore_state(
        self,
        facts: Optional[Mapping[str, object]],
        arrays: Mapping[str, "Array[np.generic]"],
        names: Optional[List[str]] = None,
    ) -> None:
        """Restore what :meth:`collect_state` returned, on every device, before the first step.

        Parameters
        ----------
        facts : dict or None
            If another optimizer saved them, nothing happens.
        arrays : dict of str to numpy.ndarray
            The same arrays, as NumPy's.
        names : list of str, optional
            As for :meth:`collect_state`.
        """
        if facts and facts["name"] == type(self.optimizer).__name__:
            optimizer_state.restore(self, facts, arrays, names)

    def _share_weights(self):
        """Give all workers worker 0's weights, now or as soon as their shapes are known."""
        if mx.util.is_np_array() and (self._workers.count > 1 or len(self.devices) > 1):
            raise ValueError(
                "npx.set_np(): several workers or devices train arrays of mx.nd only: leave it out"
            )
        first_weights.share(self._workers, self._ordered, self._from_first)

    def _from_first(self, content):
        """Give every worker the bytes of worker 0, all of one length."""
        return first_weights.by_key(self._workers, content)

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
        ever = {*self._in_order, *self.learned}
        self._in_order = [param for param in self._ordered if param in ever]
        self.exchange = self._choose_exchange()
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
        """Connect as soon as all shapes are known; called by MXNet's Trainer, again until then."""
        self._params_to_init = [param for param in self._params if param._deferred_init]
        if not self._params_to_init and not self._is_connected:
            self._connect()

    def _allreduce_grads(self):
        """Add up; called by step and allreduce_grads of MXNet's Trainer."""
        self._require_shapes()
        self._marks.bring_back(with_sums=False)
        self._attach_again()
        self._settle_freshness()
        self.exchange.rescale = self._scale / self._batch_size if self._batch_size else None
        self.exchange.add_up()

    def _is_any_fresh(self):
        """Return whether backward has reached anything, on any worker."""
        reached = any(flag for param in self.learned for flag in is_fresh(param))
        return self._workers.all_reduce([reached])[0] > 0

    def _attach_again(self):
        """Bring gradients back to where they are added up: ``grad_req`` and casts move them.

        All workers have made the same changes.
        """
        moved = [
            (param, grads) for param, grads in self.exchange.attached if param._grad is not grads
        ]
        if {*self.learned} - {*self._in_order} or any(
            param._grad and param._grad[0].dtype != grads[0].dtype for param, grads in moved
        ):
            self._connect()
            return
        for param, grads in moved:
            attach_gradients(param, grads)
            for grad in grads if param.grad_req == "null" else ():
                grad[:] = 0  # sums of sums would grow

    def _settle_freshness(self):
        """Let devices without an example take part with zeros, and agree on what is stale."""
        if not self._ignores_stale:
            zero_idle_gradients(self.learned)
            return
        learned = [param for param in self._in_order if param.grad_req != "null"]
        reached = np.array([any(is_fresh(param)) for param in learned], np.float32)
        anywhere = self._workers.all_reduce(reached) > 0
        zero_unmarked(learned)
        for param, is_reached in zip(learned, anywhere):
            mark(param, [bool(is_reached)] * len(self.devices))

    def _mark_as_used(self):
        """Take the mark away from fresh gradients: MXNet does not where ``amp`` skips an update."""
        for param in self.learned if hasattr(self, "_amp_loss_scaler") else ():
            mark(param, [False] * len(self.devices))
        self._marks.set_aside_others()
