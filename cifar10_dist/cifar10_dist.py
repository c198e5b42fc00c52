#!/usr/bin/env python3
"""Train a network on CIFAR-10: on one device, on several devices, on several workers.

One process, all GPUs of the machine, or its CPU:
    python cifar10_dist.py
Two devices, rehearsed on the CPU:
    python cifar10_dist.py --cpus 2
Two workers and two servers on this machine, then on the hosts of a file:
    python ../tools/launch.py -n 2 -s 2 --launcher local "python cifar10_dist.py"
    python ../tools/launch.py -n 2 -s 2 -H ../hosts --sync-dst-dir DIR "python cifar10_dist.py"

Read ``train`` from top to bottom: it is the lesson. A launcher starts this same file in every role;
servers and the scheduler never return from its first import.
"""

import mxnet_setup  # noqa: F401  first: MXNet reads these settings when it is imported

import mxnet as mx
from loader import RepeatedBatch
from networks.by_name import create_network
from networks.fast import num_to_whiten
from networks.precision import set_dtype
from process import launched
from process.devices import choose_devices
from process.failure import run
from process.flags import parse_args
from process.progress import Progress, measure_reading, profiled
from process.versions import versions
from saving.checkpoint import check_prefix
from saving.saver import Saver, files_finished
from saving.seeds import Seeds, draws_numbers
from saving.start import find_start
from saving.stopper import Stopper
from sources.images import ImageSource
from trainers.create import create_trainer, explain
from training import CrossEntropy, evaluate, pull_weights, train_epoch
from workers import Workers, average_statistics


def main(argv=None):
    """Train as the command line says; return the exit status."""
    args = parse_args(argv)
    with Stopper(is_active=bool(args.model_prefix)) as stopper, files_finished():
        return train(args, stopper)


def train(args, stopper):
    """Train to the end, or until a worker is asked to stop; return the exit status."""
    ctx = choose_devices(args)
    if args.model_prefix and launched.is_first_worker():
        check_prefix(args.model_prefix)  # only worker 0 writes
    # The weights come from a seed, or a file of rank 0's; create_trainer hands rank 0's to all.
    mx.random.seed(args.seed)
    set_dtype(args, ctx)
    net = create_network(args.network, args.num_classes, args.image_shape, ctx, args.num_layers)
    source = ImageSource(args)

    # The store connects the devices of this worker, and all workers, through the servers.
    store = mx.kv.create(args.kv_store)
    workers = Workers(store)
    train_loader, test_loader = source.share_out(workers)
    workers.agree({"data": source.fingerprint, **describe(args)})
    if args.network == "fast":
        net.whiten(train_loader.sample(num_to_whiten(args.image_shape)))
    if args.benchmark:
        train_loader = RepeatedBatch(train_loader)
    if args.test_io:
        return measure_reading(train_loader, args, workers)

    # Checkpoints are worker 0's: it reads them and hands what they hold to the others.
    facts = describe_training(args, source, workers, train_loader)
    restarted = launched.is_restarted()
    start = find_start(args, facts, net, ctx, workers, restarted)
    if start.is_end(args.num_epochs, args.target_accuracy):
        print(f"Epoch {start.epoch - 1}: nothing is left to train", flush=True)
        workers.barrier()
        return 0
    loss = CrossEntropy(args.label_smoothing)
    loss.hybridize(static_alloc=True, static_shape=True)
    trainer, schedule = create_trainer(args, net, ctx, store, workers, len(train_loader), start)
    start.restore(net, trainer, workers)
    saver = Saver(args, start, facts, net, trainer, workers, stopper)

    measured = bool(args.benchmark)
    progress = Progress(workers.rank, len(train_loader), args.disp_batches, args.log_dir, measured)
    if workers.rank == 0:
        devices = f"{len(ctx)} device(s) each ({', '.join(map(str, ctx))})"
        sizes = f"{args.batch_size} a worker, {train_loader.global_batch_size} in all"
        progress.say(
            f"{args.network} on {source.name}: {workers.count} worker(s), {devices}, "
            f"kvstore {store.type}, batch size {sizes}, {len(train_loader)} steps an epoch"
        )
        for line in explain(args, trainer, workers):
            progress.say(line)
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
        is_last = epoch + 1 == args.num_epochs
        flip = args.flip_test == "1" or (args.flip_test == "last" and is_last)
        result = {}
        if is_last or (epoch + 1) % args.test_period == 0:
            result = evaluate(test_loader, net, ctx, workers, args.top_k, flip)
        else:
            average_statistics(net, workers)  # to be saved as they would be after a test
        late = trainer.measure_staleness(workers) if workers.is_async else {}
        progress.epoch_done(epoch, result, trainer.learning_rate, late)
        # All workers have the same accuracy, so all stop here or none does.
        if result and args.target_accuracy and result["accuracy"] >= args.target_accuracy:
            progress.say(f"Epoch {epoch}: reached --target-accuracy {args.target_accuracy:g}")
            is_last = True
        if saver.epoch_done(epoch + 1, is_last, accuracy=result.get("accuracy")):
            break
    if measured and workers.rank == 0:
        progress.report_size(net)
    progress.close()
    return saver.finish()  # nobody leaves while others still need the servers


def describe(args):
    """Return the options and versions that must be the same for all workers."""
    own = {"gpus", "cpus", "data_dir", "data_train", "data_val", "model_prefix", "log_dir"}
    own |= {"disp_batches", "profile", "keep", "resume"}
    facts = {f"--{k.replace('_', '-')}": str(v) for k, v in vars(args).items() if k not in own}
    facts["--resume"] = args.resume if args.resume in ("auto", "none") else "of a path"
    facts["--model-prefix"] = "given" if args.model_prefix else "not given"
    return dict(facts, **versions())


def describe_training(args, source, workers, train_loader):
    """Return what a checkpoint says of the training that it is of."""
    return {
        "job": launched.job_id(),
        "options": describe(args),
        "data": source.fingerprint,
        "seed": args.seed,
        "num_workers": workers.count,
        "global_batch_size": train_loader.global_batch_size,
        "steps_per_epoch": len(train_loader),
        "is_async": workers.is_async,
    }


if __name__ == "__main__":
    run(main, "cifar10_dist.py")
