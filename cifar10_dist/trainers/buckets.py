"""Gradients sent together: one message for many parameters, and no copy to pack it.

A network has many small parameters (two for each BatchNorm) and MXNet's Trainer sends a message for
each, which takes its time however small it is. Here the gradients of neighbouring layers lie side
by side in one array, a bucket, and backward writes them there; the bucket is what is sent.
PyTorch's DistributedDataParallel does the same (Li et al. 2020, arXiv 2006.15704). Where a cable is
slow, the first layers' sums pass others, so that the next step begins meanwhile (as in
ByteScheduler, Peng et al. 2019, doi 10.1145/3341301.3359642).
"""

import mxnet as mx
import numpy as np

from ground.environment import uses_p3
from trainers.worker_trainer import Exchange

BUCKET_BYTES = 8 << 20
ALIGN = 16  # elements: a cache line, which oneDNN's vectors like to start at


class Buckets(Exchange):
    """Adds gradients up by the bucket, through the store.

    Parameters
    ----------
    bucket_bytes : int
        A bucket that has as much takes no more gradients. A smaller number lets more of them leave
        before the first layers' gradients, which come last; a larger one makes fewer messages.

    Attributes
    ----------
    buckets : list of list of NDArray
        Of each bucket, from the first layers' on, its array on each device.
    lets_pass : bool
        Whether the first layers' buckets go before others, once connected.
    """

    def __init__(self, bucket_bytes=BUCKET_BYTES):
        self._bucket_bytes, self.buckets, self.lets_pass = bucket_bytes, [], False

    def move_gradients(self, params):
        """Let the gradients of neighbouring layers lie in one array, on each device.

        Parameters
        ----------
        params : mxnet.gluon.ParameterDict
            Initialized, in the order of the layers.
        """
        in_order = [param for param in params.values() if param.grad_req != "null"]
        groups = _group(in_order, self._bucket_bytes)
        self.buckets = [self._lay_out(list(_spans(group))) for group in groups]

    def connect(self, store, first_key):
        """Make a key for each bucket, from ``first_key`` on."""
        self._store, self._first_key = store, first_key
        for key, bucket in enumerate(self.buckets, first_key):
            store.init(key, bucket[0])
        self.lets_pass = "dist" in store.type and not uses_p3()  # P3 has an order of its own

    def add_up(self):
        """Push and pull every bucket, in the order that lets the next step begin soonest."""
        last, *others = reversed(range(len(self.buckets)))  # as backward fills them
        early, middle, first = others[:1], others[1:-1], others[1:][-1:]
        # The next step needs the first layers' bucket first. Those in the middle wait for the last
        # one's answer: on a slow cable that lets the others go ahead, on a fast one it comes soon.
        for number in (last, *early, *first):
            self._send(number)
        for number in reversed(middle):
            if self.lets_pass:
                for bucket, before in zip(self.buckets[number], self.buckets[last]):
                    let_pass(before, bucket)
            self._send(number)

    def _send(self, number):
        self._store.pushpull(self._first_key + number, self.buckets[number], priority=-number)

    def _new_bucket(self, size, like):
        """Return an array (size,) of zeros for each device that an array of ``like`` is on."""
        return [mx.nd.zeros(size, ctx=data.context, dtype=data.dtype) for data in like]

    def _lay_out(self, spans):
        """Let the gradients of some parameters lie in one array, on each device.

        Returns
        -------
        list of NDArray
            Of each device, shape (n,): the gradients with zeros between them.
        """
        bucket = self._new_bucket(spans[-1][2], spans[0][0].list_data())
        for param, start, stop in spans:
            param._grad = [flat[start:stop].reshape(param.shape) for flat in bucket]
            mx.autograd.mark_variables(param.list_data(), param._grad, param.grad_req)
        return bucket


def _spans(params):
    """Yield each parameter with where its gradient starts and stops in the bucket."""
    start = 0
    for param in params:
        stop = start + param.list_data()[0].size
        yield param, start, stop
        start = -(-stop // ALIGN) * ALIGN


def let_pass(before, array):
    """Have what is asked of ``array`` from now on done after what was asked of ``before``.

    MXNet's engine sees an operator that reads the one and writes the other, with what is there
    already; nothing waits here. (To add 0 times ``before`` would spread its NaN.)
    """
    own = array[:1]
    mx.nd.where(before[:1], own, own, out=own)


def _group(params, bucket_bytes):
    """Divide parameters into lists of neighbours of at least ``bucket_bytes``, from the last on."""
    groups, size = [], bucket_bytes
    for param in reversed(params):
        # Dense layers write their type "float32", others numpy.float32.
        if size >= bucket_bytes or np.dtype(param.dtype) != np.dtype(groups[-1][0].dtype):
            groups.append([])
            size = 0
        groups[-1].append(param)
        size += param.list_data()[0].size * 4
    return [group[::-1] for group in groups[::-1]]
