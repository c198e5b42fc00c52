"""Create the Trainer: one way of exchanging gradients and of updating for each kind of training.

To add a way of exchanging gradients, write a function like :func:`through_store`, enter it in
``WAYS``, and let :func:`choose_way` return its name.
"""

import inspect
from dataclasses import dataclass
from functools import cached_property

import mxnet as mx
from mxnet.contrib import amp

from ground.failure import UsageError
from trainers.asynchronous import AsyncTrainer, allow_for_staleness, explain_staleness
from trainers.buckets import Buckets
from trainers.compression import HalfBuckets, TwoBits, compression_params
from trainers.horovod import HorovodBuckets
from trainers.lookahead import Lookahead
from trainers.optimizers import EVERYWHERE, OURS
from trainers.schedule import ResumedScheduler, create_schedule, scaled_learning_rate
from trainers.shared_memory import SharedBuckets, share_memory
from trainers.step_times import TimedTrainer


def create_trainer(args, dtype, net, ctx, store, workers, steps_per_epoch, steps_done=0):
    """Create the Trainer that the command line asks for; all workers make this call.

    Parameters
    ----------
    args : argparse.Namespace
    dtype : {'float32', 'float16', 'bfloat16'}
        What the network computes in; float16 needs its losses scaled.
    net : mxnet.gluon.HybridBlock
        Initialized; all workers get worker 0's weights.
    ctx : list of mxnet.Context
        The devices of this worker.
    store : mxnet.kvstore.KVStore
    workers : workers.Workers
    steps_per_epoch : int
    steps_done : int
        Steps that were done before a restart.

    Returns
    -------
    base.JobTrainer
    """
    plan = Plan(args, net.collect_params(), ctx, store, workers, steps_per_epoch, steps_done)
    trainer = WAYS[choose_way(plan)](plan)
    if dtype == "float16":
        amp.init_trainer(trainer)
    share_weights(trainer)
    return trainer


@dataclass
class Plan:
    """What the functions in ``WAYS`` need to create a Trainer."""

    args: object
    params: mx.gluon.ParameterDict
    ctx: list
    store: mx.kvstore.KVStore
    workers: object
    steps_per_epoch: int
    steps_done: int

    def worker_trainer(self, store=None, exchange=None, compression=None):
        """Create a Trainer that updates on the workers, with this exchange of gradients."""
        kind, options = choose_optimizer(self.args, self.workers)
        optimizer = OURS.get(self.args.optimizer.lower(), kind)(**options)
        schedule = self.schedule(options["learning_rate"])
        period, num_steps = self.args.lookahead, self.steps_per_epoch * self.args.num_epochs
        lookahead = Lookahead(self.learned, period, num_steps) if period else None
        more = {"steps_done": self.steps_done, "lookahead": lookahead}
        return TimedTrainer(self.params, optimizer, schedule, store, exchange, compression, **more)

    @property
    def learned(self):
        """The parameters with gradients, sorted by name."""
        params = (param for _, param in sorted(self.params.items()))
        return [param for param in params if param.grad_req != "null"]

    @cached_property
    def shared_memory(self):
        """Memory for gradients that all workers see, or None; all workers ask for it."""
        size = sum(param.list_data()[0].size for param in self.learned)
        size *= 4 * (self.workers.count + 1)
        return share_memory(self.workers, self.ctx == [mx.cpu()], size)

    def schedule(self, lr, updates_per_step=1):
        """Create the schedule: a function from the number of an update (from 1) to its rate."""
        args = self.args
        return create_schedule(
            args.lr_schedule,
            lr,
            self.steps_per_epoch * updates_per_step,
            args.num_epochs,
            args.warmup_epochs,
            args.lr_factor,
            args.lr_step_epochs,
        )


def choose_way(plan):
    """Return how this training exchanges gradients, a name in ``WAYS``; all workers call this.

    "shared memory" is for one host, where all workers can see the same memory.
    """
    if plan.workers.is_async:
        return "asynchronous"
    if plan.args.gc_type:
        return {"fp16": "float16", "2bit": "two bits"}[plan.args.gc_type]
    if plan.store.type == "horovod":
        return "horovod"
    if plan.workers.count > 1:
        is_shared = plan.args.allreduce == "auto" and plan.shared_memory is not None
        return "shared memory" if is_shared else "store"
    return "one device" if len(plan.ctx) == 1 and "dist" not in plan.store.type else "store"


def on_one_device(plan):
    """One device: there is nothing to add up."""
    return plan.worker_trainer()


def through_store(plan):
    """Push gradients to the servers and pull their sums; with one worker, its own store adds up."""
    return plan.worker_trainer(plan.store, Buckets())


def through_horovod(plan):
    """Add gradients up in Horovod's ring."""
    return plan.worker_trainer(plan.store, HorovodBuckets())


def in_shared_memory(plan):
    """Add gradients up in memory that all workers see."""
    return plan.worker_trainer(plan.store, SharedBuckets(plan.shared_memory))


def in_float16(plan):
    """Push gradients in 16 bits each, and pull their sums in 16."""
    return plan.worker_trainer(plan.store, HalfBuckets())


def in_two_bits(plan):
    """Push gradients in two bits each, and pull their sums in 32."""
    args, workers = plan.args, plan.workers
    compression = compression_params(
        args.gc_type, args.gc_threshold, args.batch_size * workers.count
    )
    trainer = plan.worker_trainer(plan.store, TwoBits(plan.params), compression)
    workers.collectives.note_compression(compression["threshold"])
    return trainer


def asynchronously(plan):
    """Let the servers update at each push of each worker.

    The optimizer and its schedule are sent to the servers, where the pushes of all workers count.
    """
    args, workers = plan.args, plan.workers
    kind, options = choose_optimizer(args, workers)
    schedule = plan.schedule(options["learning_rate"], updates_per_step=workers.count)
    done = plan.steps_done * workers.count
    optimizer = kind(lr_scheduler=ResumedScheduler(schedule, done), **options)
    lines = []
    if args.lr_scale == "staleness":
        asked = {"learning_rate": args.lr, "momentum": args.mom}
        lines += explain_staleness(asked, options, workers.count)
    if args.lookahead:
        lines.append("dist_async: no --lookahead: the weights are the servers'")
    workers.collectives.note_server_optimizer()  # which the trainer sends them
    return AsyncTrainer(plan.params, optimizer, plan.store, lines)


WAYS = {
    "one device": on_one_device,
    "store": through_store,
    "horovod": through_horovod,
    "shared memory": in_shared_memory,
    "float16": in_float16,
    "two bits": in_two_bits,
    "asynchronous": asynchronously,
}


def share_weights(trainer):
    """Give all workers worker 0's weights, and wait until they are here.

    MXNet's Trainer would do it in its first step and push gradients immediately. They can overtake
    a worker's pull of the weights, which then receives gradients instead.
    """
    trainer._init_kvstore()
    trainer._init_params()
    mx.nd.waitall()


def choose_optimizer(args, workers):
    """Return the class of the optimizer, and its options for this number of workers."""
    name = args.optimizer.lower()
    if name == "sgld" and workers.count > 1 and not workers.is_async:
        raise UsageError("--optimizer sgld: each worker would add noise of its own; take -n 1")
    kind = EVERYWHERE.get(name) or mx.optimizer.Optimizer.opt_registry[name]
    update_size = args.batch_size * (1 if workers.is_async else workers.count)
    lr = scaled_learning_rate(args.lr, args.lr_scale, update_size)
    momentum = args.mom if "momentum" in inspect.signature(kind).parameters else None
    if args.lr_scale == "staleness":
        lr, momentum = allow_for_staleness(lr, momentum, workers.count)
    options = {"learning_rate": lr, "wd": args.wd}
    return kind, options if momentum is None else dict(options, momentum=momentum)
