"""What may not stand in ``hybrid_forward``: small blocks, called as Python code and as a graph."""

import operator
import random
from itertools import count

import mxnet as mx
from mxnet import autograd
from mxnet.gluon import HybridBlock

calls = count(1)
TRAPS = {
    "x.asnumpy()": lambda x: x / x.asnumpy().max(),
    "if x.sum() > 0:": lambda x: x if x.sum() > 0 else -x,
    "x.shape": lambda x: x / x.shape[0],
    "x[0] = 1": lambda x: operator.setitem(x, 0, 1) or x,
    "x + mx.nd.ones(2)": lambda x: x + mx.nd.ones(2),
    "x * random.random()": lambda x: x * random.random(),
    "self.calls += 1": lambda x: x * next(calls),
    "autograd.is_training()": lambda x: 2 * x if autograd.is_training() else x,
    "x[0]": lambda x: x[0],
}


class Written(HybridBlock):
    """A block whose ``hybrid_forward`` is a given function of ``x``."""

    def __init__(self, function):
        super().__init__()
        self._function = function

    def hybrid_forward(self, F, x):
        """Take x to function(x)."""
        return self._function(x)


def compare(code):
    """Call a block with this code four times, plain and hybridized; return how they differ."""
    plain, hybridized = Written(TRAPS[code]), Written(TRAPS[code])
    hybridized.hybridize()
    wanted = _four_calls(plain)
    try:
        got = _four_calls(hybridized)
    except (AttributeError, TypeError, mx.base.NotImplementedForSymbol) as error:
        return f"{type(error).__name__}: {str(error)[:48]} …"
    differing = [number for number in range(4) if got[number] != wanted[number]]
    if not differing:
        return "no difference"
    number = differing[0]
    return f"no error; call {number + 1} gives {got[number]:.3g}, not {wanted[number]:.3g}"


def _four_calls(block):
    """Return the sum of each result; the last call is one of training."""
    global calls
    calls = count(1)
    random.seed(0)
    x = mx.nd.array([[1, 2], [3, 4]])
    sums = [block(x).sum().asscalar() for _ in range(3)]
    with autograd.record():
        return [*sums, block(x).sum().asscalar()]
