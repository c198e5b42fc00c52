"""Count the bytes that a training keeps on each device."""

import mxnet as mx
import numpy as np


def count_bytes(net, trainer):
    """Count weights, gradients and the optimizer's state, ``{kind: {device: bytes}}``.

    Without the buffers in which the store adds up: Python cannot see them.
    """
    params = net.collect_params().values()
    updaters = trainer._updaters
    if trainer._update_on_kvstore:
        updaters = [trainer._kvstore._updater]
    states = [state for updater in updaters for state in updater.states.values()]
    arrays = {
        "weights": [data for param in params for data in param.list_data()],
        "gradients": [grad for param in params for grad in param.list_grad()],
        "state": [array for state in states for array in flat(state)],
    }
    return {kind: add_up_by_device(some) for kind, some in arrays.items()}


def output_bytes(net, shape):
    """Count the bytes of all layers' outputs, in float32, for images of a shape.

    Backward needs them. What it needs besides for a moment is not counted.
    """
    scores = net(mx.sym.var("data"))
    layers = scores.get_internals()
    inputs = set(scores.list_inputs())
    _, shapes, _ = layers.infer_shape(data=shape)
    outputs = [s for name, s in zip(layers.list_outputs(), shapes) if name not in inputs]
    return 4 * sum(int(np.prod(s)) for s in outputs)


def flat(state):
    """List the arrays of one weight's state: none for SGD, one with momentum, two for Adam."""
    if state is None:
        return []
    return list(state) if isinstance(state, (list, tuple)) else [state]


def add_up_by_device(arrays):
    """Add up the bytes of arrays, ``{device: bytes}``."""
    count = {}
    for array in arrays:
        place = str(array.context)
        count[place] = count.get(place, 0) + array.size * np.dtype(array.dtype).itemsize
    return count
