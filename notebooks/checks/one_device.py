"""The checks of the notebook on one device."""

import mxnet as mx
import numpy as np
from mxnet import gluon
from mxnet.gluon import HybridBlock, nn

from checks import exercise, fault_of_parts, function

# What MXNet's profiler wrote on a stranger's GPU, in two equal steps: times in ms.
STRANGERS_TRACE = """\
 start   end  who     what
   0.0   0.4  Python  net(x), loss, backward, trainer.step: four calls
   0.2   3.1  device  forward
   3.1   9.0  device  backward
   0.4   9.6  Python  losses.asnumpy()
   9.0   9.6  device  update
   9.6  15.8  Python  next(batches)
  15.8  16.2  Python  net(x), loss, backward, trainer.step: four calls
  16.0  18.9  device  forward
  18.9  24.8  device  backward
  16.2  25.4  Python  losses.asnumpy()
  24.8  25.4  device  update
"""


@exercise("01", 2)
def check_trace(answer):
    """Check ``{"idle_ms": …, "cause": …, "best_ms": …}`` against the stranger's trace."""
    hints = {
        "idle_ms": "between its update and its next forward pass, what does the device do?",
        "cause": "which call keeps Python from reading the next batch while the device works?",
        "best_ms": "without that call, who would set the pace: the device or Python?",
    }
    wanted = {"idle_ms": 16.0 - 9.6, "cause": "losses.asnumpy()", "best_ms": 9.6 - 0.2}
    return fault_of_parts(answer, wanted, hints, close=0.05)


@exercise("01", 1, like=function)
def check_falling_rate(train):
    """Compare a loop whose rate falls with NumPy: one weight, batches of three, three and two."""
    x = np.arange(1, 9, dtype="float32").reshape(-1, 1) / 8
    cuts = slice(0, 3), slice(3, 6), slice(6, 8)
    weight = 1.0
    for number, cut in enumerate(cuts):
        gradient = ((weight * x[cut] - 2 * x[cut]) * x[cut]).mean()
        weight -= 0.5 * (1 - number / len(cuts)) * gradient
    net = nn.Dense(1, use_bias=False, in_units=1)
    net.initialize("ones")
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.5})
    batches = [(mx.nd.array(x[cut]), mx.nd.array(2 * x[cut])) for cut in cuts]
    try:
        train(net, gluon.loss.L2Loss(), trainer, batches, 0.5)
    except Exception as error:
        return f"your loop raised {type(error).__name__}: {str(error).strip()}"
    got = net.weight.data().asnumpy().item()
    if got == 1:
        return "the weight has not moved"
    is_right = abs(got - weight) < 1e-4
    return "" if is_right else f"the weight should end at {weight:.4f}, and is {got:.4f}"


class Counting(HybridBlock):
    """Counts how often Python runs its ``hybrid_forward``."""

    def __init__(self):
        super().__init__()
        self.count = 0
        self.dense = nn.Dense(2)

    def hybrid_forward(self, F, x):
        """Take x (n, m) to scores (n, 2)."""
        self.count += 1
        return self.dense(x)


@exercise("01", 3)
def check_python_runs(answer):
    """Run the planned calls, and compare the number of Python's runs after each part."""
    net = Counting()
    net.initialize()
    x, more = mx.nd.ones((2, 3)), mx.nd.ones((5, 3))
    runs = {}

    def do(part, *arrays):
        before = net.count
        for array in arrays:
            net(array)
        runs[part] = net.count - before

    do("plain", x, x, x)
    net.hybridize()
    do("hybridized", x, x, x)
    do("another batch size", more, more)
    net.hybridize()
    do("hybridized again", x, more)
    return fault_of_parts(answer, runs, lambda part: f"it is not {answer.get(part)} times")
