"""Gradients sent together: one message for many parameters, without a copy.

A network has many small parameters (two for each BatchNorm). MXNet's Trainer sends a message for
each of them, and even a small message takes time. Here the gradients of neighbouring layers lie
side by side in one array, a bucket: backward writes them there, and the whole bucket is sent.
PyTorch's DistributedDataParallel does the same (Li et al. 2020, arXiv 2006.15704). On a slow cable
the first layers' sums are sent before others, so that the next step can begin earlier (as in
ByteScheduler, Peng et al. 2019, doi 10.1145/3341301.3359642).
"""

from gluon_dist.exchange.exchange import Exchange, attach_gradients
from gluon_dist.setup.environment import num_servers, uses_p3

import mxnet as mx
import numpy as np

BUCKET_BYTES = 8 << 20
UNCUT = 1_000_000  # numbers: MXNet puts a smaller array on one server, whose cable carries it all
LEAST_BYTES = 200_000  # with less, even on a cable of 1 Gbit/s, another message takes longer
ALIGN = 16  # elements: a cache line; oneDNN is faster when arrays begin at one


class Buckets(Exchange):
    """Adds gradients up bucket by bucket, through the store.

    Parameters
    ----------
    bucket_bytes : int, optional
        A bucket that has reached this size takes no more gradients. Smaller buckets can be sent
        earlier, while backward is still computing; larger ones make fewer messages. Default: 8 MB;
        a network so small that MXNet would put it all on one server is spread over all of them.

    Attributes
    ----------
    buckets : list of list of NDArray
        One for each bucket, from the first layers' on: its array on each device.
    overtakes : bool
        Whether the first layers' bucket overtakes others; known once connected.
    """

    def __init__(self, bucket_bytes=None):
        self._bucket_bytes, self.buckets, self.overtakes = bucket_bytes, [], False
        self.attached = []

    def move_gradients(self, params):
        """Place the gradients of neighbouring layers in one array on each device."""
        size = _default_bytes(params) if self._bucket_bytes is None else self._bucket_bytes
        groups = _group(params, size)
        self.buckets = [self._lay_out(list(_spans(group))) for group in groups]

    def connect(self, workers):
        """Make a key for each bucket."""
        self._store, self._first_key = workers.own_store, workers.take_keys(len(self.buckets))
        self._sent = [self._to_send(bucket) for bucket in self.buckets]
        for key, arrays in enumerate(self._sent, self._first_key):
            self._store.init(key, arrays[0])
        # P3 has an order of its own.
        self.overtakes = "dist" in workers.store_type and not uses_p3()

    def add_up(self):
        """Push and pull every bucket, in the order in which the next step can begin earliest."""
        count = len(self.buckets)
        for number in reversed(range(count)[-2:]):  # of the last layers: backward fills them first
            self._send(number)
        # The next step needs the first layers' bucket first. Those after it wait for the last
        # layers' sum: on a slow cable the first one overtakes them, on a fast one it is no loss.
        for number in range(count - 2):
            if number and self.overtakes:
                for bucket, last in zip(self.buckets[number], self.buckets[-1]):
                    wait_for(last, bucket)
            self._send(number)

    def _send(self, number):
        self._store.pushpull(self._first_key + number, self._sent[number], priority=-number)

    def _to_send(self, bucket):
        """Return what travels for a bucket, an array on each device: here the bucket itself."""
        return bucket

    def _new_bucket(self, size, like):
        """Return an array (size,) of zeros on each device of the arrays in ``like``."""
        return [mx.nd.zeros(size, ctx=data.context, dtype=data.dtype) for data in like]

    def _lay_out(self, spans):
        """Place the gradients of some parameters in one array on each device.

        Returns
        -------
        list of NDArray
            One for each device, shape (n,): the gradients, with zeros between them.
        """
        bucket = self._new_bucket(spans[-1][2], spans[0][0].list_data())
        for param, start, stop in spans:
            grads = [flat[start:stop].reshape(param.shape) for flat in bucket]
            self.attached.append((param, grads))
            attach_gradients(param, grads)
        return bucket


def _default_bytes(params):
    """Return the bytes of a bucket; a small network gets as many buckets as there are servers."""
    size = sum(param.list_data()[0].size for param in params)
    if size >= UNCUT:
        return BUCKET_BYTES
    return max(LEAST_BYTES, -(-4 * size // max(1, num_servers())))  # none: Horovod, one process


def _spans(params):
    """Yield each parameter and the start and stop of its gradient in the bucket."""
    start = 0
    for param in params:
        stop = start + param.list_data()[0].size
        yield param, start, stop
        start = -(-stop // ALIGN) * ALIGN


def wait_for(before, array):
    """Make later operations on ``array`` wait for the earlier ones on ``before``.

    MXNet's engine sees an operator that reads ``before`` and writes ``array``, whose values stay
    the same. Python does not wait. (Adding 0 times ``before`` would copy its NaNs.)
    """
    own = array[:1]
    mx.nd.where(before[:1], own, own, out=own)


def _group(params, bucket_bytes):
    """Divide parameters, from the last on, into groups of at least ``bucket_bytes``."""
    groups, size = [], bucket_bytes
    for param in reversed(params):
        # The type of a Dense layer is the string "float32", of other layers numpy.float32.
        if size >= bucket_bytes or np.dtype(param.dtype) != np.dtype(groups[-1][0].dtype):
            groups.append([])
            size = 0
        groups[-1].append(param)
        size += param.list_data()[0].size * 4
    return [group[::-1] for group in groups[::-1]]
