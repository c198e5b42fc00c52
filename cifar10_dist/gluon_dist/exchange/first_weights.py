"""All workers begin with the weights of worker 0.

MXNet's Trainer sees to it in its first step, when gradients of other weights are there.
"""

from gluon_dist.workers.operations import compare

import mxnet as mx
import numpy as np


def share(workers, params, from_first):
    """Give all workers worker 0's weights, now or as soon as their shapes are known.

    Parameters
    ----------
    workers : Workers
        All make this call.
    params : list of mxnet.gluon.Parameter
        In an order that all workers have.
    from_first : callable
        Takes bytes, and returns worker 0's; all workers call it.
    """
    if workers.count == 1:
        return

    def give(these):
        if these:
            _give(these, from_first)

    for param in params:  # also those that the program may begin again
        vars(param).pop("_init_impl", None)  # of an earlier Trainer
        param._init_impl = _and_then(param._init_impl, give, [param])
    known = [param for param in params if not param._deferred_init]
    compare(workers, "Trainer", *(f"{param.dtype} {param.shape}" for param in params))
    give(known)


def by_key(workers, content):
    """Give every worker the bytes of worker 0, by the first value of a key.

    So they travel once to the servers and once to each worker. All workers pass as many bytes.
    """
    key, store = workers.take_keys(1), workers.own_store
    filled = content + bytes(-len(content) % 4)
    buffer = mx.nd.array(np.frombuffer(filled, np.float32), dtype="float32")
    store.init(key, buffer)
    store.pull(key, out=buffer)
    return buffer.asnumpy().tobytes()


def _give(params, from_first):
    """Give these parameters, whose shapes are known, worker 0's values on every device."""
    arrays = [param.list_data()[0].asnumpy() for param in params]
    content, start = from_first(b"".join(array.tobytes() for array in arrays)), 0
    for param, array in zip(params, arrays):
        stop = start + array.nbytes
        values = np.frombuffer(content[start:stop], array.dtype).reshape(array.shape)
        start = stop
        for data in param.list_data():
            data[:] = mx.nd.array(values, dtype=array.dtype)


def _and_then(function, following, *arguments):
    """Return a function that calls one, and then another with these arguments."""

    def both(*args, **kwargs):
        function(*args, **kwargs)
        following(*arguments)

    return both
