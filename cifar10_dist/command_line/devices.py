"""Which devices a worker trains on."""

from gluon_dist.common.failure import UsageError
from gluon_dist.workers.group import devices

import mxnet as mx

from command_line.parse import check_devices


def choose_devices(args):
    """Return the contexts to train on: all GPUs, the ones named, or CPU devices."""
    try:
        ctx = [mx.cpu(i) for i in range(args.cpus)] if args.cpus else devices(args.gpus)
    except ValueError as error:
        raise UsageError(f"--{error}") from None
    check_devices(args, ctx[0].device_type, len(ctx))
    return ctx
