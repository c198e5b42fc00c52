"""The optimizer that is sent to the servers of ``dist_async``.

A server never leaves ``import mxnet``: it serves inside that import. So this file may import only
those parts of MXNet that are ready by then.
"""

from mxnet.optimizer import Optimizer

COUNTER_KEY = 99_999  # above the keys of any Trainer, below those of collectives.py


class CountingOptimizer(Optimizer):
    """The servers' optimizer; a server calls it for every push to any key.

    It updates the weights, adds pushes to ``COUNTER_KEY`` up, and stores pushes to higher keys,
    those of ``collectives.py``, as they are.

    Parameters
    ----------
    inner : mxnet.optimizer.Optimizer
        Updates the weights.
    """

    takes_all_keys = True  # see gluon_dist/setup/server_optimizers.py

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def create_state_multi_precision(self, index, weight):
        """Create the inner optimizer's state of a weight."""
        if index >= COUNTER_KEY:
            return None
        return self.inner.create_state_multi_precision(index, weight)

    def update_multi_precision(self, index, weight, grad, state):
        """Update a weight, add to the counter, or replace a value, depending on the key."""
        if index > COUNTER_KEY:
            weight[:] = grad
        elif index == COUNTER_KEY:
            weight += grad
        else:
            self.inner.update_multi_precision(index, weight, grad, state)
