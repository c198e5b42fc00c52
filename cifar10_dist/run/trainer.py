"""The Trainer that the command line asks for."""

from gluon_dist.common.errors import UsageError
from gluon_dist.exchange.choice import SMALLEST, choose_exchange
from gluon_dist.exchange.step_times import Timed
from gluon_dist.exchange.trainer import Trainer

from mxnet.contrib import amp

from run.lookahead import Lookahead
from run.optimizer import OptimizerOptions, choose_optimizer
from run.schedule import ResumedScheduler, create_schedule


def create_trainer(args, net, workers, steps_per_epoch, steps_done=0):
    """Create the Trainer that the command line asks for; all workers make this call.

    Parameters
    ----------
    args : argparse.Namespace
    net : mxnet.gluon.HybridBlock
        Initialized; all workers get worker 0's weights.
    workers : Workers
    steps_per_epoch : int
    steps_done : int
        Steps that this worker had done before a restart.

    Returns
    -------
    gluon_dist.Trainer

    Raises
    ------
    UsageError
        If these workers cannot train so.
    """
    options = OptimizerOptions.of(args)
    kind, arguments = choose_optimizer(options, workers)
    params = net.collect_params()
    updates = steps_per_epoch * (workers.count if workers.is_async else 1)  # of an epoch
    schedule = create_schedule(
        args.lr_schedule,
        arguments["learning_rate"],
        updates,
        args.num_epochs,
        warmup_epochs=args.warmup_epochs,
        factor=args.lr_factor,
        at=args.lr_step_epochs,
    )
    if workers.is_async:  # the servers have the schedule, where the pushes of all workers count
        rest = ResumedScheduler(schedule, sum(workers.all_gather_int(steps_done)))
        return Trainer(params, kind(lr_scheduler=rest, **arguments), kvstore=workers.store)
    lookahead = None
    if options.lookahead:
        learned = [param for _, param in sorted(params.items()) if param.grad_req != "null"]
        lookahead = Lookahead(learned, options.lookahead, steps_per_epoch * args.num_epochs)
    trainer = PlannedTrainer(
        params,
        kind(**arguments),
        workers.store,
        compression_params(args.gc_type, args.gc_threshold, args.batch_size * workers.count),
        schedule=schedule,
        steps_done=steps_done,
        lookahead=lookahead,
        may_share=args.allreduce == "auto",
    )
    if args.dtype == "float16":  # its losses are scaled
        amp.init_trainer(trainer)
    return trainer


class PlannedTrainer(Trainer):
    """A Trainer whose rate, and average of weights, follow a plan; its steps are timed.

    Parameters
    ----------
    params, optimizer, store, compression
        As of :class:`gluon_dist.Trainer`.
    schedule : callable
        Takes the number of a step, from 1, and returns its learning rate.
    steps_done : int
        Steps that were done before a restart. The optimizer's own count of updates can differ:
        float16 skips some, and smaller batches before a restart make more.
    lookahead : run.lookahead.Lookahead or None
        Called after every step.
    may_share : bool
        Whether workers on one host may add gradients up in memory that they share.
    """

    def __init__(
        self,
        params,
        optimizer,
        store,
        compression=None,
        schedule=None,
        steps_done=0,
        lookahead=None,
        may_share=True,
    ):
        self._schedule, self._steps_done, self._lookahead = schedule, steps_done, lookahead
        self._may_share = may_share
        super().__init__(params, optimizer, kvstore=store, compression_params=compression)

    def step(self, batch_size, ignore_stale_grad=False):
        """Set the rate of this step, make it, and let Lookahead do its part."""
        self._steps_done += 1
        self._scale = 1 / self.loss_scale  # by which the losses were multiplied
        self.set_learning_rate(self._schedule(self._steps_done))
        super().step(batch_size, ignore_stale_grad)
        if self._lookahead:
            self._lookahead.step(self._steps_done)

    def collect_state(self, names=None):
        """Return also the average of the weights."""
        facts, arrays = super().collect_state(names)
        if self._lookahead:
            arrays.update(self._lookahead.collect())
        return facts, arrays

    def restore_state(self, facts, arrays, names=None):
        """Restore also the average of the weights."""
        super().restore_state(facts, arrays, names)
        if self._lookahead:
            self._lookahead.restore(arrays)

    def _choose_exchange(self):
        found = choose_exchange(
            self._workers,
            self.devices,
            self._in_order,
            self._compression_params,
            may_share=self._may_share,
        )
        return Timed(found) if self._workers.count > 1 else found


def compression_params(kind, threshold, global_batch_size):
    """Return what ``--gc-type`` and ``--gc-threshold`` ask for, as the Trainer takes it, or None.

    The threshold is, as in MXNet's examples, of gradients that are summed over a batch. Here they
    are divided by the batch of all workers before they are pushed, and so is the threshold.

    Parameters
    ----------
    kind : {'fp16', '2bit'} or None
    threshold : float
    global_batch_size : int
    """
    if not kind:
        return None
    divided = round(threshold / global_batch_size, 6)
    if kind == "2bit" and divided < SMALLEST:
        raise UsageError(
            f"--gc-threshold {threshold:g}: divided by the batch of all workers, "
            f"{global_batch_size}, it must be at least {SMALLEST:f}"
        )
    return {"type": kind, "threshold": divided}
