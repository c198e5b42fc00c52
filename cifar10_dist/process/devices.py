"""Which devices a worker trains on."""

import mxnet as mx
from sampler import split_range

from process import launched
from process.failure import UsageError


def choose_devices(args):
    """Return the contexts to train on: all GPUs, the ones named, or CPU devices."""
    available = mx.context.num_gpus()
    wanted = (
        args.gpus
        if args.gpus is not None
        else share_gpus(available, launched.local_workers(), launched.local_rank())
    )
    if args.cpus or not wanted:
        ctx = [mx.cpu(i) for i in range(args.cpus or 1)]
    else:
        missing = [i for i in wanted if i >= available]
        if missing:
            raise UsageError(
                f"--gpus {missing[0]}: this machine has {available} GPU(s) that MXNet sees"
            )
        ctx = [mx.gpu(i) for i in wanted]
    if ctx[0].device_type == "cpu" and args.dtype == "float16":
        raise UsageError("--dtype float16 needs a GPU; on the CPU try bfloat16")
    if ctx[0].device_type == "gpu" and args.dtype == "bfloat16":
        raise UsageError("--dtype bfloat16 needs a CPU; on GPUs try float16")
    if args.batch_size < len(ctx):
        raise UsageError(
            f"--batch-size {args.batch_size}: fewer than one for each of {len(ctx)} devices"
        )
    return ctx


def share_gpus(available, workers, place):
    """Return this worker's GPUs where ``--gpus`` does not say: its share of the host's.

    The launcher tells how many workers the host has, and which of them this is.
    """
    if available < workers:  # several workers to one GPU
        return tuple(range(available))[place % max(available, 1) :][:1]
    start, stop = split_range(available, workers, place)
    return tuple(range(start, stop))
