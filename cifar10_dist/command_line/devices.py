"""Which devices a worker trains on."""

import mxnet as mx

from command_line.parse import check_devices
from ground import environment
from ground.failure import UsageError
from ground.split import split_range


def choose_devices(args):
    """Return the contexts to train on: all GPUs, the ones named, or CPU devices."""
    available = mx.context.num_gpus()
    wanted = (
        args.gpus
        if args.gpus is not None
        else share_gpus(available, environment.local_workers(), environment.local_rank())
    )
    if args.cpus or not wanted:
        kind, numbers = "cpu", range(args.cpus or 1)
    else:
        kind, numbers = "gpu", wanted
        missing = [i for i in wanted if i >= available]
        if missing:
            raise UsageError(
                f"--gpus {missing[0]}: this machine has {available} GPU(s) that MXNet sees"
            )
    check_devices(args, kind, len(numbers))
    return [mx.Context(kind, i) for i in numbers]


def share_gpus(available, workers, local_rank):
    """Return this worker's GPUs where ``--gpus`` does not say: its share of the host's.

    The launcher tells how many workers the host has, and which of them this is.
    """
    if available < workers:  # several workers to one GPU
        return tuple(range(available))[local_rank % max(available, 1) :][:1]
    start, stop = split_range(available, workers, local_rank)
    return tuple(range(start, stop))
