#!/usr/bin/env python3
"""Train a network on CIFAR-10: on one device, on several devices, on several workers.

One process, all GPUs of the machine, or its CPU:
    python cifar10_dist.py
Two devices, rehearsed on the CPU:
    python cifar10_dist.py --cpus 2
Two workers and two servers on this machine, then on the hosts of a file:
    python ../tools/launch.py -n 2 -s 2 --launcher local "python cifar10_dist.py"
    python ../tools/launch.py -n 2 -s 2 -H hosts --sync-dst-dir DIR "python DIR/cifar10_dist.py"

Read ``train`` from top to bottom: it is the lesson. A launcher starts this same file in every role;
servers and the scheduler never return from ``import mxnet``.
"""

import inspect
import os

import mxnet_setup  # noqa: F401  first: MXNet reads these settings when it is imported

import mxnet as mx
from checkpoint import check_prefix
from data import ImageSource
from failure import UsageError, run
from loader import RepeatedBatch
from mxnet.contrib import amp
from network import create_network
from options import parse_args
from progress import Progress, measure_reading, profiled
from resume import find_start
from sampler import split_range
from saving import Saver
from schedule import ResumedScheduler, create_schedule, scaled_learning_rate
from seeding import Seeds, draws_numbers
from stopping import Stopper
from training import CrossEntropy, evaluate, pull_weights, train_epoch
from workers import Workers


def main(argv=None):
    """Train as the command line says; return the exit status."""
    args = parse_args(argv)
    with Stopper(is_active=bool(args.model_prefix)) as stopper:
        return train(args, stopper)


def train(args, stopper):
    """Train to the end, or until a worker is asked to stop; return the exit status."""
    ctx = choose_devices(args)
    check_optimizer(args.optimizer)
    if args.model_prefix and os.environ.get("LAUNCH_WORKER_ID", "0") == "0":
        check_prefix(args.model_prefix)  # only worker 0 writes
    # The weights come from a seed, or a file of rank 0's; create_trainer hands rank 0's to all.
    mx.random.seed(args.seed)
    if args.dtype != "float32":
        amp.init(target_dtype=args.dtype)
    net = create_network(args.network, args.num_classes, args.image_shape, ctx, args.num_layers)
    source = ImageSource(args)

    # The store connects the devices of this worker, and all workers, through the servers.
    store = mx.kv.create(args.kv_store)
    workers = Workers(store)
    train_loader, test_loader = source.share_out(workers)
    workers.agree({"data": source.fingerprint, **describe(args)})
    if args.benchmark:
        train_loader = RepeatedBatch(train_loader)
    if args.test_io:
        return measure_reading(train_loader, args, workers)

    # Checkpoints are worker 0's: it reads them and hands what they hold to the others.
    facts = describe_training(args, source, workers, train_loader)
    restarted = int(os.environ.get("LAUNCH_ATTEMPT") or 1) > 1
    start = find_start(args, facts, net, ctx, workers, restarted)
    if start.is_end(args.num_epochs, args.target_accuracy):
        print(f"Epoch {start.epoch - 1}: nothing is left to train", flush=True)
        workers.barrier()
        return 0
    loss = CrossEntropy(args.label_smoothing)
    trainer, schedule = create_trainer(args, net, ctx, store, workers, len(train_loader), start)
    start.restore(net, trainer, workers)
    saver = Saver(args, start, facts, net, trainer, workers, stopper)

    progress = Progress(workers.rank, len(train_loader), args.disp_batches, args.log_dir)
    if workers.rank == 0:
        devices = f"{len(ctx)} device(s) each ({', '.join(map(str, ctx))})"
        sizes = f"{args.batch_size} a worker, {train_loader.global_batch_size} in all"
        progress.say(
            f"{args.network} on {source.name}: {workers.count} worker(s), {devices}, "
            f"kvstore {store.type}, batch size {sizes}, {len(train_loader)} steps an epoch"
        )
    seeds = Seeds(args.seed, workers.rank) if draws_numbers(net, args.optimizer) else None
    for epoch in range(start.epoch, args.num_epochs):
        progress.epoch_started(epoch)
        with profiled(args.profile if epoch == start.epoch else None, workers.rank):
            begin = start.step if epoch == start.epoch else 0
            course = (train_loader, net, loss, trainer, ctx, progress, schedule)
            steps = train_epoch(epoch, *course, begin, seeds, stopper)
        if workers.is_async:
            pull_weights(net, trainer, workers)
        if saver.stopped_within(epoch, steps):
            break
        result = evaluate(test_loader, net, ctx, workers, args.top_k)
        progress.epoch_done(epoch, result, trainer.learning_rate)
        is_last = epoch + 1 == args.num_epochs
        # All workers have the same accuracy, so all stop here or none does.
        if args.target_accuracy and result["accuracy"] >= args.target_accuracy:
            progress.say(f"Epoch {epoch}: reached --target-accuracy {args.target_accuracy:g}")
            is_last = True
        if saver.epoch_done(epoch + 1, is_last, accuracy=result["accuracy"]):
            break
    progress.close()
    return saver.finish()  # nobody leaves while others still need the servers


def choose_devices(args):
    """Return the contexts to train on: all GPUs, the ones named, or CPU devices."""
    if args.dtype == "float16" and (args.cpus or not mx.context.num_gpus()):
        raise UsageError("--dtype float16 needs a GPU; on the CPU try bfloat16")
    available = mx.context.num_gpus()
    wanted = args.gpus if args.gpus is not None else share_gpus(available)
    if args.cpus or not wanted:
        ctx = [mx.cpu(i) for i in range(args.cpus or 1)]
    else:
        missing = [i for i in wanted if i >= available]
        if missing:
            raise UsageError(
                f"--gpus {missing[0]}: this machine has {available} GPU(s) that MXNet sees"
            )
        ctx = [mx.gpu(i) for i in wanted]
    if ctx[0].device_type == "gpu" and args.dtype == "bfloat16":
        raise UsageError("--dtype bfloat16 needs a CPU; on GPUs try float16")
    if args.batch_size < len(ctx):
        raise UsageError(
            f"--batch-size {args.batch_size}: fewer than one for each of {len(ctx)} devices"
        )
    return ctx


def share_gpus(available, environ=os.environ):
    """Return this worker's GPUs where ``--gpus`` does not say: its share of the host's.

    The launcher tells how many workers the host has, and which of them this is.
    """
    workers = int(environ.get("LAUNCH_LOCAL_WORKERS") or 1)
    place = int(environ.get("LAUNCH_LOCAL_RANK") or 0)
    if available < workers:  # several workers to one GPU
        return tuple(range(available))[place % max(available, 1) :][:1]
    start, stop = split_range(available, workers, place)
    return tuple(range(start, stop))


def check_optimizer(name):
    """See that MXNet has the optimizer."""
    if name.lower() not in mx.optimizer.Optimizer.opt_registry:
        known = ", ".join(sorted(mx.optimizer.Optimizer.opt_registry))
        raise UsageError(f"--optimizer {name}: not one of {known}")


def describe(args):
    """Return the options that must be the same for all workers."""
    own = {"gpus", "cpus", "data_dir", "data_train", "data_val", "model_prefix", "log_dir"}
    own |= {"disp_batches", "profile", "keep", "resume"}
    facts = {f"--{k.replace('_', '-')}": str(v) for k, v in vars(args).items() if k not in own}
    facts["--resume"] = args.resume if args.resume in ("auto", "none") else "of a path"
    facts["--model-prefix"] = "given" if args.model_prefix else "not given"
    return dict(facts, MXNet=mx.__version__)


def describe_training(args, source, workers, train_loader):
    """Return what a checkpoint says of the training that it is of."""
    return {
        "job": os.environ.get("LAUNCH_JOB", ""),
        "options": describe(args),
        "data": source.fingerprint,
        "seed": args.seed,
        "num_workers": workers.count,
        "global_batch_size": train_loader.global_batch_size,
        "steps_per_epoch": len(train_loader),
        "is_async": workers.is_async,
    }


def create_trainer(args, net, ctx, store, workers, steps_per_epoch, start=None):
    """Create the Trainer and the learning-rate schedule.

    The workers update their own copies from gradients that the servers have added up: learning
    rates, a short last batch and saved states then work as on one machine. In ``dist_async`` there
    is no common gradient; the servers update with each push, so the schedule travels to them
    inside the optimizer and counts the pushes of all workers.

    Returns
    -------
    trainer : mxnet.gluon.Trainer
    schedule : callable or None
        Rate of an update, counted from 1; None where the servers keep it.
    """
    lr = scaled_learning_rate(args.lr, args.lr_scale, workers.count)
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
    kind = mx.optimizer.Optimizer.opt_registry[args.optimizer.lower()]
    if "momentum" in inspect.signature(kind).parameters:
        options["momentum"] = args.mom
    if workers.is_async:
        if start:
            done = (start.epoch * steps_per_epoch + start.step) * workers.count
            schedule = ResumedScheduler(schedule, done)
        options["lr_scheduler"] = schedule
        schedule = None
    # With one device and one worker there is nothing to add up.
    alone = workers.count == 1 and len(ctx) == 1 and "dist" not in store.type
    trainer = mx.gluon.Trainer(
        net.collect_params(),
        args.optimizer,
        options,
        kvstore=None if alone else store,
        update_on_kvstore=workers.is_async,
    )
    if args.dtype == "float16":
        amp.init_trainer(trainer)
    # The Trainer would do this in its first step, and then push gradients at once: on the way they
    # can overtake a worker's pull of rank 0's weights, which then gets gradients for weights.
    trainer._init_kvstore()
    trainer._init_params()
    mx.nd.waitall()
    return trainer, schedule


if __name__ == "__main__":
    run(main, "cifar10_dist.py")
