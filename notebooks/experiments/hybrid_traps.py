"""What may not stand in ``hybrid_forward``: small blocks, called as Python code and as a graph."""

import operator
import random
from textwrap import shorten

import mxnet as mx
from mxnet import autograd
from mxnet.autograd import is_training
from mxnet.gluon import HybridBlock

TRAPS = {  # what hybrid_forward returns
    "x / x.asnumpy().max()": lambda self, x: x / x.asnumpy().max(),
    "x if x.sum() > 0 else -x": lambda self, x: x if x.sum() > 0 else -x,
    "x / x.shape[0]": lambda self, x: x / x.shape[0],
    "x, after x[0] = 1": lambda self, x: operator.setitem(x, 0, 1) or x,
    "x + mx.nd.ones(2)": lambda self, x: x + mx.nd.ones(2),
    "x * random.random()": lambda self, x: x * random.random(),
    "x * self.count()": lambda self, x: x * self.count(),
    "2 * x if is_training() else x": lambda self, x: 2 * x if is_training() else x,
    "x[0]": lambda self, x: x[0],
}


class Written(HybridBlock):
    """A block whose ``hybrid_forward`` is a given function of the block and ``x``."""

    def __init__(self, function):
        super().__init__()
        self._function, self._calls = function, 0

    def count(self):
        """Add 1 to a counter, and return it."""
        self._calls += 1
        return self._calls

    def hybrid_forward(self, F, x):
        """Take x to the function's value."""
        return self._function(self, x)


def compare(code):
    """Call a block with this code four times, plain and hybridized; return how they differ."""
    plain, hybridized = Written(TRAPS[code]), Written(TRAPS[code])
    hybridized.hybridize()
    wanted = _four_calls(plain)
    try:
        got = _four_calls(hybridized)
    except (AttributeError, TypeError, mx.base.NotImplementedForSymbol) as error:
        return shorten(f"{type(error).__name__}: {error}", 64, placeholder=" …")
    differing = [number for number in range(4) if got[number] != wanted[number]]
    if not differing:
        return "no difference"
    number = differing[0]
    return f"no error; call {number + 1} gives {got[number]:.3g}, not {wanted[number]:.3g}"


def _four_calls(block):
    """Return the sum of each result; the last call is one of training."""
    random.seed(0)
    x = mx.nd.array([[1, 2], [3, 4]])
    sums = [block(x).sum().asscalar() for _ in range(3)]
    with autograd.record():
        return [*sums, block(x).sum().asscalar()]
