"""The optimizer that travels to the servers of ``dist_async``.

They find it while they import mxnet, where they stay: so it needs a file that imports no more of
MXNet than there is by then.
"""

from mxnet.optimizer import Optimizer

COUNTER_KEY = 99_999  # above the keys of any Trainer, below those of collectives.py


class CountingOptimizer(Optimizer):
    """An optimizer for the servers, which have one for all keys and for every push.

    It moves the weights, adds up what is pushed to ``COUNTER_KEY``, and lets what is pushed to the
    keys above, those of ``collectives.py``, replace what was there.

    Parameters
    ----------
    inner : mxnet.optimizer.Optimizer
        What moves the weights.
    """

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def create_state_multi_precision(self, index, weight):
        """Create what the inner optimizer remembers of a weight."""
        if index >= COUNTER_KEY:
            return None
        return self.inner.create_state_multi_precision(index, weight)

    def update_multi_precision(self, index, weight, grad, state):
        """Let the inner optimizer move a weight; count; replace."""
        if index > COUNTER_KEY:
            weight[:] = grad
        elif index == COUNTER_KEY:
            weight += grad
        else:
            self.inner.update_multi_precision(index, weight, grad, state)
