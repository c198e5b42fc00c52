#!/usr/bin/env python3
"""Train a network on CIFAR-10: on one device, on several devices, on several workers.

One process, all GPUs of the machine, or its CPU:
    python cifar10_dist.py
Two devices, rehearsed on the CPU:
    python cifar10_dist.py --cpus 2
Two workers and two servers on this machine, then on the hosts of a file:
    python ../tools/launch.py -n 2 -s 2 --launcher local "python cifar10_dist.py"
    python ../tools/launch.py -n 2 -s 2 -H ../hosts --sync-dst-dir DIR "python cifar10_dist.py"

Read ``train`` from top to bottom: it is the lesson. What a step does stands in ``training.py``,
``loader.py`` and ``sampler.py`` beside it, and in ``gluon_dist/``. A launcher starts this same file
in every role; servers and the scheduler never return from its first import.
"""

import gluon_dist as gd  # first: before mxnet
from gluon_dist.checkpoint.session import Session
from gluon_dist.common.failure import exit_with
from gluon_dist.workers.workers import Workers

from command_line.devices import choose_devices
from command_line.options import options_of
from command_line.parse import parse_args
from loader import create_loaders
from networks.create import create_network
from networks.mirror import network_to_test
from run.precision import use_mixed_precision
from run.reading import measure_reading
from run.resume import begin_or_resume
from run.trainer import create_trainer
from run.training_run import TrainingRun, introduce
from run.versions import versions
from sources.images import ImageSource
from training import CrossEntropy, evaluate, forward_backward, split_batch


def main(argv=None):
    """Train as the command line says; return the exit status."""
    args = parse_args(argv)
    if args.test_io:
        workers = Workers(gd.store(args.kv_store))
        train_loader, _ = create_loaders(args, ImageSource(args), workers)
        return measure_reading(train_loader, workers, args.disp_batches)
    with Session(args.model_prefix) as session:  # takes TERM and USR1: save and stop
        return train(args, session)


def train(args, session):
    """Train to the end, or until a worker is asked to stop; return the exit status.

    Parameters
    ----------
    args : argparse.Namespace
    session : gluon_dist.checkpoint.session.Session
    """
    ctx = choose_devices(args)  # [gpu(0), gpu(1)], or [cpu(0)]
    images = ImageSource(args)
    loss = CrossEntropy(args.label_smoothing)
    loss.hybridize(static_alloc=True, static_shape=True)

    # The store connects the devices of this worker, and all workers through the servers.
    workers = Workers(gd.store(args.kv_store))
    train_loader, test_loader = create_loaders(args, images, workers)  # of this worker's part
    settings = {"data": images.fingerprint, **options_of(args), **versions()}
    workers.agree(settings)  # if they differ, the job ends here

    # From a checkpoint, or from the beginning. Parameters first; the optimizer's state below.
    net = create_network(args, ctx, images)
    start = begin_or_resume(args, settings, net, workers, train_loader, session)
    if start.is_end(args.num_epochs, args.target_accuracy):
        gd.barrier()  # no worker exits while another one needs the servers
        return 0
    use_mixed_precision(args.dtype)  # unless it is float32
    trainer = create_trainer(args, net, workers, start.steps_per_epoch, start.steps_done)
    start.restore(trainer, net, workers)
    run = TrainingRun(args, start, net, trainer, workers, session)  # reports, saves, stops
    introduce(args, net, images, train_loader, trainer, workers)

    for epoch in range(start.epoch, args.num_epochs):
        for batch in run.batches(train_loader, epoch):  # ends early on a request to stop
            data, labels = split_batch(batch, ctx)  # a part for each device: split_and_load
            # The losses are divided by the examples of all workers, so that the sum of all
            # gradients is the gradient of the mean loss. (float16 has a scale besides, else 1.)
            divisor = batch.global_size / trainer.loss_scale
            outputs = forward_backward(net, loss, data, labels, divisor)
            trainer.step(1)  # adds gradients up over devices and workers, and updates the weights
            run.step_done(outputs, labels)
        trainer.pull_weights()  # dist_async: other workers have updated them on the servers
        if run.save_if_stopped(epoch):
            break
        gd.average_statistics(net)  # of BatchNorm, which each device has moved for itself
        result = {}
        if run.is_test_due(epoch):
            # Each worker tests its part of the test set; they add up their counts.
            tested = network_to_test(net, args.flip_test, epoch + 1 == args.num_epochs)
            result = evaluate(test_loader, tested, ctx, args.top_k)
        run.epoch_done(epoch, result)  # reports, and saves if it is time
        if run.is_over:
            break
    return run.finish()


if __name__ == "__main__":
    exit_with(main, "cifar10_dist.py")
