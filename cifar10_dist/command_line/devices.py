"""Which devices a worker trains on."""

from gluon_dist.common.errors import UsageError
from gluon_dist.workers.group import devices

import mxnet as mx

from command_line.checks import check_devices


def choose_devices(args):
    """Return the contexts to train on: all GPUs, the ones named, or CPU devices."""
    if args.cpus:
        check_devices(args, "cpu", args.cpus)
        return [mx.cpu(number) for number in range(args.cpus)]
    try:
        ctx = devices(args.gpus)
    except ValueError as error:
        raise UsageError(f"--{error}") from None
    check_devices(args, ctx[0].device_type, len(ctx))
    return ctx
