"""The Trainer of each way of training, with the schedule of its learning rate."""

import inspect

import mxnet as mx
from mxnet.contrib import amp
from networks import fast as fast_network
from process.failure import UsageError

from trainers.asynchronous import AsyncTrainer, allow_for_staleness
from trainers.buckets import BucketTrainer
from trainers.compression import CompressingTrainer, compression_params
from trainers.schedule import ResumedScheduler, create_schedule, scaled_learning_rate
from trainers.sharded_updates import ShardedTrainer, can_shard
from trainers.shared_memory import SharedMemoryTrainer, share_memory
from trainers.worker_trainer import Lookahead, WorkerTrainer


def create_trainer(args, net, ctx, store, workers, steps_per_epoch, start=None):
    """Create the Trainer and the learning-rate schedule.

    The workers update their own copies from gradients that the servers have added up: learning
    rates, a short last batch and saved states then work as on one machine. (On one host they add
    up themselves, and each updates a part for all.) In ``dist_async`` there is no common gradient;
    the servers update with each push, so the schedule travels to them inside the optimizer and
    counts the pushes of all workers.

    Returns
    -------
    trainer : mxnet.gluon.Trainer
    schedule : callable or None
        Rate of an update, counted from 1; None where the servers keep it.
    """
    if args.optimizer.lower() == "sgld" and workers.count > 1 and not workers.is_async:
        raise UsageError("--optimizer sgld: each worker would add noise of its own; take -n 1")
    global_batch_size = args.batch_size * workers.count
    update_size = args.batch_size if workers.is_async else global_batch_size
    lr = scaled_learning_rate(args.lr, args.lr_scale, update_size)
    kind = mx.optimizer.Optimizer.opt_registry[args.optimizer.lower()]
    momentum = args.mom if "momentum" in inspect.signature(kind).parameters else None
    if args.lr_scale == "staleness":
        lr, momentum = allow_for_staleness(lr, momentum, workers.count)
    updates_per_step = workers.count if workers.is_async else 1
    schedule = create_schedule(
        args.lr_schedule,
        lr,
        steps_per_epoch * updates_per_step,
        args.num_epochs,
        args.warmup_epochs,
        args.lr_factor,
        args.lr_step_epochs,
    )
    options = {"learning_rate": lr, "wd": args.wd}
    if momentum is not None:
        options["momentum"] = momentum
    params = net.collect_params()
    lookahead = None
    if args.lookahead and not workers.is_async:
        learned = [param for param in params.values() if param.grad_req != "null"]
        lookahead = Lookahead(learned, args.lookahead, steps_per_epoch * args.num_epochs)
    if workers.is_async:
        if start:
            done = (start.epoch * steps_per_epoch + start.step) * workers.count
            schedule = ResumedScheduler(schedule, done)
        trainer = AsyncTrainer(params, kind(lr_scheduler=schedule, **options), store)
        schedule = None
    elif args.gc_type:
        compression = compression_params(args.gc_type, args.gc_threshold, global_batch_size)
        trainer = CompressingTrainer(params, args.optimizer, options, store, lookahead, compression)
        workers.compressed(compression["threshold"])
    elif workers.count == 1 and len(ctx) == 1 and "dist" not in store.type:
        trainer = WorkerTrainer(params, args.optimizer, options, None, lookahead)
    else:
        common = (params, args.optimizer, options, store, lookahead)
        has_one_cpu = args.allreduce == "auto" and ctx == [mx.cpu()]
        num_bytes = 4 * sum(p.list_data()[0].size for p in params.values() if p.grad_req != "null")
        # Gradients of each, weights, and what an optimizer keeps of each weight.
        size = num_bytes * (workers.count + 4)
        memory = share_memory(workers, has_one_cpu, size) if workers.count > 1 else None
        if memory:
            shards = can_shard(kind(**options), args.dtype)
            trainer_of = ShardedTrainer if shards else SharedMemoryTrainer
            trainer = trainer_of(*common, memory=memory)
        else:
            trainer = BucketTrainer(*common)
    if args.dtype == "float16":
        amp.init_trainer(trainer)
    # The Trainer would do this in its first step, and then push gradients at once: on the way they
    # can overtake a worker's pull of rank 0's weights, which then gets gradients for weights.
    trainer._init_kvstore()
    trainer._init_params()
    mx.nd.waitall()
    return trainer, schedule


def explain(args, trainer, workers):
    """Say what the program does on its own account: defaults of a network, late gradients."""
    if args.network == "fast":
        names = [*fast_network.DEFAULTS, "lr_scale", "warmup_epochs"]
        chosen = [f"--{name.replace('_', '-')} {_as_flag(getattr(args, name))}" for name in names]
        yield f"--network fast trains with {' '.join(chosen)}"
    if workers.is_async and args.lr_scale == "staleness":
        optimizer = trainer.optimizer.inner
        asked = {"learning rate": (optimizer.lr, args.lr)}
        if hasattr(optimizer, "momentum"):
            asked["momentum"] = (optimizer.momentum, args.mom)
        changed = [
            f"{n} {now:g} instead of {was:g}" for n, (now, was) in asked.items() if now != was
        ]
        if changed:
            yield (
                f"dist_async: {', '.join(changed)}, as the gradients of {workers.count} workers "
                "come late; --lr-scale none leaves them"
            )
    if workers.is_async and args.lookahead:
        yield "dist_async: no --lookahead: the weights are the servers'"
    if isinstance(trainer, SharedMemoryTrainer):
        yield (
            "all workers are on one host: gradients are added up in shared memory"
            f"{', and updates shared among the workers' if trainer.shares_states else ''}; "
            "--allreduce servers sends them, as between hosts"
        )
    if args.gc_type:
        yield (
            "gradients in 2 bits: pushes are 16 times smaller, pulls are not, so that both "
            "together shrink 1.88 times at most"
        )


def _as_flag(value):
    """Write a value as on the command line."""
    if isinstance(value, tuple):
        return ",".join(map(_as_flag, value))
    return f"{value:g}" if isinstance(value, float) else str(value)
