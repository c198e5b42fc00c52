"""What notebook 02 needs besides its lesson: a network, its weights, an error's words, a clock."""

import time

import mxnet as mx
import numpy as np
from mxnet.gluon import nn


def create_lenet(ctx, seed):
    """Create LeNet with tanh and averages (LeCun et al. 1998) for images (n, 1, 28, 28)."""
    mx.random.seed(seed)
    net = nn.HybridSequential()
    net.add(nn.Conv2D(6, 5, padding=2, activation="tanh"), nn.AvgPool2D())
    net.add(nn.Conv2D(16, 5, activation="tanh"), nn.AvgPool2D())
    net.add(nn.Dense(120, activation="tanh"), nn.Dense(84, activation="tanh"), nn.Dense(10))
    net.infer_shape(mx.nd.zeros((1, 1, 28, 28)))
    net.initialize(mx.init.Xavier(), ctx=ctx)
    net.hybridize(static_alloc=True, static_shape=True)
    return net


def weights(net, device):
    """Return all parameters of one device's copy, in a row."""
    return np.concatenate([p.data(device).asnumpy().ravel() for p in net.collect_params().values()])


def error_of(function, *args, **options):
    """Call, and return the line of the error that tells; no error is one, too."""
    try:
        function(*args, **options)
    except Exception as error:
        lines = [line for line in str(error).splitlines() if line.strip()]
        # MXNet's own errors stand below a trace of C++.
        line = next((line for line in lines if line.startswith("MXNetError")), lines[0])
        return f"{type(error).__name__}: {line.split('MXNetError: ')[-1].split('. ')[0]}"
    raise AssertionError("there was no error")


def time_steps(step, num_steps=20, num_times=5):
    """Return the milliseconds of a step: the best of several times, the first left out."""
    seconds = []
    for _ in range(num_times):
        mx.nd.waitall()
        start = time.perf_counter()
        for _ in range(num_steps):
            step()
        mx.nd.waitall()
        seconds.append(time.perf_counter() - start)
    return min(seconds[1:]) / num_steps * 1000
