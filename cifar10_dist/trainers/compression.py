"""Gradients that take fewer bytes on their way: 16 bits each, or two.

In 16 bits, float16, all of them arrive, rounded to 3 or 4 digits, and their sums come back in 16
bits too: both ways take half of the bytes. (DDP has the same as ``fp16_compress_hook``.)

In two bits, for every weight, a worker pushes 0 or plus or minus the threshold, and adds the rest
to its next gradient (Strom 2015; in MXNet: mxnet.apache.org/api/faq/gradient_compression). So a
push takes 2 bits instead of 32, 16 times less. The sum comes back in 32 bits. Push and pull
together take 2 + 32 bits instead of 32 + 32, 1.88 times less.
"""

import mxnet as mx

from ground.failure import UsageError
from trainers.buckets import Buckets
from trainers.worker_trainer import Exchange

SMALLEST = 1e-6  # MXNet tells the servers the threshold in six decimals
SET_MULTI_PRECISION = 1  # kSetMultiPrecision in kvstore_dist_server.h


class HalfBuckets(Buckets):
    """Buckets that travel in float16, there and back.

    The gradients of mean losses are small. Below 6e-5 float16 has fewer digits, and below 3e-8 it
    has zero, so that they are all sent ``loss_scale`` times as large.
    """

    loss_scale = 1024

    def connect(self, store, first_key):
        """Have the servers add float16 in float32, then make the keys."""
        if store.rank == 0:
            store._send_command_to_servers(SET_MULTI_PRECISION, "")
        super().connect(store, first_key)

    def explain(self):
        """Say what is sent, and up to which size."""
        largest = 65504 / self.loss_scale
        return [
            "gradients are sent in 16 bits, which halves the bytes of both ways; "
            f"a sum above {largest:.0f} is infinite in it, and ends the training"
        ]

    def _to_send(self, bucket):
        return [data.astype("float16") for data in bucket]

    def _send(self, number):
        pairs = list(zip(self.buckets[number], self._sent[number]))
        for data, half in pairs:
            mx.nd.cast(data, dtype="float16", out=half)
        super()._send(number)
        for data, half in pairs:
            mx.nd.cast(half, dtype="float32", out=data)


class TwoBits(Exchange):
    """Adds gradients up by a push, which MXNet compresses, and a pull.

    MXNet's Trainer uses ``pushpull``, which fails: ``Compression not supported with PushPull``.

    Parameters
    ----------
    params : mxnet.gluon.ParameterDict
    """

    def __init__(self, params):
        self._params = [params[name] for name in sorted(params)]  # in the Trainer's order

    def connect(self, store, first_key):
        """Take the store; the Trainer has made a key for each parameter."""
        self._store = store

    def add_up(self):
        """Push and pull every gradient."""
        for key, param in enumerate(self._params):
            if param.grad_req != "null":
                self._store.push(key, param.list_grad(), priority=-key)
                self._store.pull(key, param.list_grad(), priority=-key)

    def explain(self):
        """Say what to expect."""
        return [
            "gradients in 2 bits: pushes are 16 times smaller, pulls are not, so that both "
            "together shrink 1.88 times at most"
        ]


def compression_params(kind, threshold, global_batch_size):
    """Describe the compression as MXNet wants it.

    Parameters
    ----------
    kind : {'2bit'}
    threshold : float
        As in MXNet's examples, of gradients summed over a batch. Here they are divided by
        ``global_batch_size`` before they are pushed, and so is the threshold.
    global_batch_size : int

    Returns
    -------
    dict
        ``type``, and ``threshold`` with six decimals: with more, workers and servers would use
        different thresholds.
    """
    pushed = round(threshold / global_batch_size, 6)
    if pushed < SMALLEST:
        raise UsageError(
            f"--gc-threshold {threshold:g}: divided by the batch of all workers, "
            f"{global_batch_size}, it must be at least {SMALLEST:f}"
        )
    return {"type": kind, "threshold": f"{pushed:f}"}
