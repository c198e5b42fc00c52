#!/usr/bin/env python3
"""Train a network on CIFAR-10: on one device, on several devices, on several workers.

One process, all GPUs of the machine, or its CPU:
    python cifar10_dist.py
Two devices, rehearsed on the CPU:
    python cifar10_dist.py --cpus 2
Two workers and two servers on this machine, then on the hosts of a file:
    python ../tools/launch.py -n 2 -s 2 --launcher local "python cifar10_dist.py"
    python ../tools/launch.py -n 2 -s 2 -H ../hosts --sync-dst-dir DIR "python cifar10_dist.py"

Read ``train`` from top to bottom: it is the lesson. What it calls stands in ``training.py``,
``workers.py``, ``loader.py`` and ``sampler.py`` beside it. A launcher starts this same file in
every role; servers and the scheduler never return from its first import.
"""

import mxnet_setup  # noqa: F401  first: MXNet reads these settings when it is imported

import mxnet as mx

from command_line.devices import choose_devices
from command_line.parse import parse_args
from ground import failure
from networks.create import create_network
from run.progress import measure_reading
from run.run import Run
from sources.images import ImageSource
from trainers.create import create_trainer
from training import CrossEntropy, evaluate, forward_backward, split_batch
from workers import Workers


def main(argv=None):
    """Train as the command line says; return the exit status."""
    args = parse_args(argv)
    if args.test_io:
        return measure_reading(args)
    with Run(args) as run:
        return train(args, run)


def train(args, run):
    """Train to the end, or until a worker is asked to stop; return the exit status.

    Parameters
    ----------
    args : argparse.Namespace
    run : run.run.Run
        Saves, resumes, stops and reports: it is told what the loop does.
    """
    ctx = choose_devices(args)  # [gpu(0), gpu(1)], or [cpu(0)]
    images = ImageSource(args)
    net = create_network(args, ctx, images)
    loss = CrossEntropy(args.label_smoothing)
    loss.hybridize(static_alloc=True, static_shape=True)

    # The store connects the devices of this worker, and all workers through the servers.
    store = mx.kv.create(args.kv_store)
    workers = Workers(store)
    train_loader, test_loader = images.split(workers)  # each worker gets its part
    steps_done = run.begin(workers, images, train_loader, net)  # 0, or those of a checkpoint
    trainer = create_trainer(args, net, ctx, store, workers, len(train_loader), steps_done)

    for epoch in run.epochs(trainer):
        for batch in run.batches(epoch):
            # Each device computes the gradients of its part: gluon.utils.split_and_load.
            data, labels = split_batch(batch, ctx)
            # The losses are divided by the examples of all workers (dist_async: of this one), so
            # that the sum of all gradients is the gradient of the mean loss.
            divisor = trainer.loss_divisor(batch)
            outputs = forward_backward(net, loss, data, labels, divisor)
            trainer.step(1)  # adds gradients up over devices and workers, and updates the weights
            run.step_done(batch, outputs, labels)
        if run.stopped_within(epoch):  # on request; it has saved
            break
        if run.is_test_due(epoch):
            # Each worker tests its part of the test set; they add up their counts.
            flip = run.flips(epoch)  # --flip-test: each image and its mirror image
            run.test_done(evaluate(test_loader, net, ctx, workers, args.top_k, flip))
        run.epoch_done(epoch)
    return run.finish()


if __name__ == "__main__":
    failure.run(main, "cifar10_dist.py")
