"""Which way gradients are added up: by the store, the workers' hosts, and the compression."""

from gluon_dist.exchange.buckets import Buckets
from gluon_dist.exchange.compression import HalfBuckets, TwoBits
from gluon_dist.exchange.exchange import Exchange
from gluon_dist.exchange.horovod import HorovodBuckets
from gluon_dist.exchange.shared_memory import SharedBuckets, share_memory

import mxnet as mx
import numpy as np

SMALLEST = 1e-6  # MXNet tells the servers the threshold in six decimals


def check_compression(params, workers):
    """See that this compression can be done on this store.

    Parameters
    ----------
    params : dict or None
    workers : Workers

    Raises
    ------
    ValueError
    """
    if not params:
        return
    kind = params.get("type")
    if kind not in ("fp16", "2bit"):
        raise ValueError(f"compression_params: type {kind!r} is not 'fp16' or '2bit'")
    if workers.is_async or workers.store_type == "horovod":
        raise ValueError(f"compression_params: not with {workers.store_type}: it needs dist_sync")
    if kind == "2bit" and not float(params.get("threshold", 0.5)) >= SMALLEST:
        raise ValueError(
            f"compression_params: the threshold {params['threshold']} must be at least "
            f"{SMALLEST:f}: MXNet tells the servers six decimals"
        )


def choose_exchange(workers, devices, params, compression=None, may_share=True):
    """Return the way in which the gradients of a training are added up; all workers call this.

    Parameters
    ----------
    workers : Workers
    devices : list of mxnet.Context
        Of this worker.
    params : list of mxnet.gluon.Parameter
        Those with gradients, initialized.
    compression : dict or None
    may_share : bool
        Whether workers on one host may add up in memory that they all see.

    Returns
    -------
    Exchange
    """
    found = _choose(workers, devices, params, compression, may_share)
    threshold = workers.collectives.threshold  # of an earlier Trainer
    if threshold is None or isinstance(found, SharedBuckets):
        return found
    if isinstance(found, TwoBits) and np.float32(found.threshold) == threshold:
        return found
    raise ValueError(
        "compression_params: an earlier Trainer has this store send 2 bits: give this one "
        f"{{'type': '2bit', 'threshold': {threshold:g}}}, too"
    )


def _choose(workers, devices, params, compression, may_share):
    """Return the way that goes with the store, the compression and the devices."""
    if workers.store_type == "horovod":
        return HorovodBuckets()
    is_dist = "dist" in workers.store_type
    if compression and is_dist:
        if compression["type"] == "fp16":
            return HalfBuckets()
        return TwoBits(compression.get("threshold", 0.5))
    if workers.count > 1:
        size = sum(param.list_data()[0].size for param in params)
        size *= 4 * (workers.count + 1)
        memory = share_memory(workers, devices == [mx.cpu()], size) if may_share else None
        return Buckets() if memory is None else SharedBuckets(memory)
    return Exchange() if len(devices) == 1 and not is_dist else Buckets()
