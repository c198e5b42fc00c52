"""Gradients that take fewer bytes on their way: 16 bits each, or two.

In 16 bits, float16, all of them arrive, rounded to 3 or 4 digits, and their sums come back in 16
bits too: both ways take half of the bytes. (DDP has the same as ``fp16_compress_hook``.)

In two bits, for every weight, a worker pushes 0 or plus or minus the threshold, and adds the rest
to its next gradient (Strom 2015; in MXNet: mxnet.apache.org/api/faq/gradient_compression). So a
push takes 2 bits instead of 32, 16 times less. The sum comes back in 32 bits. Push and pull
together take 2 + 32 bits instead of 32 + 32, 1.88 times less.
"""

import math

from gluon_dist.exchange.buckets import Buckets
from gluon_dist.exchange.exchange import Exchange

import mxnet as mx

SET_MULTI_PRECISION = 1  # kSetMultiPrecision in kvstore_dist_server.h
LARGER = 1024  # times as large as the gradient of a mean loss


class HalfBuckets(Buckets):
    """Buckets that travel in float16, there and back.

    The gradients of mean losses are small. Below 6e-5 float16 has fewer digits, and below 3e-8 it
    has zero, so that they are all sent ``LARGER`` times as large.
    """

    def connect(self, workers):
        """Have the servers add float16 in float32, then make the keys."""
        if workers.rank == 0:
            workers.store._send_command_to_servers(SET_MULTI_PRECISION, "")
        super().connect(workers)

    def explain(self):
        """Say what is sent, and up to which size."""
        return [
            "gradients are sent in 16 bits, which halves the bytes of both ways; "
            f"a sum above {65504 / LARGER:.0f} is infinite in it, and ends the training"
        ]

    def _to_send(self, bucket):
        return [data.astype("float16") for data in bucket]

    def _send(self, number):
        # The sums are divided by the batch later. A power of two changes no digit.
        factor = 2.0 ** round(math.log2(LARGER * self.rescale)) if self.rescale else 1.0
        pairs = list(zip(self.buckets[number], self._sent[number]))
        for data, half in pairs:
            mx.nd.cast(data * factor, dtype="float16", out=half)
        super()._send(number)
        for data, half in pairs:
            mx.nd.cast(half, dtype="float32", out=data)
            data /= factor


class TwoBits(Exchange):
    """Adds gradients up by a push, which MXNet compresses, and a pull.

    MXNet's Trainer uses ``pushpull``, which fails: ``Compression not supported with PushPull``.

    Parameters
    ----------
    threshold : float
        With six decimals at most: with more, workers and servers would use different ones.
    """

    def __init__(self, threshold):
        self.threshold = f"{float(threshold):f}"

    def move_gradients(self, params):
        """Note the parameters; their gradients stay where they are."""
        self._params = params

    def connect(self, workers):
        """Make a key for each parameter, and let the store compress what is pushed from now on."""
        self._store, self._first_key = workers.own_store, workers.take_keys(len(self._params))
        if "dist" in workers.store_type:  # others do not compress
            self._store.set_gradient_compression({"type": "2bit", "threshold": self.threshold})
            workers.collectives.note_compression(self.threshold)
        for key, param in enumerate(self._params, self._first_key):
            self._store.init(key, mx.nd.zeros(param.shape))

    def add_up(self):
        """Push and pull every gradient."""
        for key, param in enumerate(self._params, self._first_key):
            if param.grad_req == "null":  # frozen
                continue
            self._store.push(key, param.list_grad(), priority=-key)
            self._store.pull(key, param.list_grad(), priority=-key)

    def explain(self):
        """Say what to expect."""
        return [
            "gradients in 2 bits: pushes are 16 times smaller, pulls are not, so that both "
            "together shrink 1.88 times at most"
        ]
