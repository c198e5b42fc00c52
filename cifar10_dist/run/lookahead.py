"""Lookahead: an average of the weights, at which the training ends."""

import mxnet as mx


class Lookahead:
    """A moving average of the weights, to which the weights are reset every ``period`` steps.

    Zhang et al. 2019, arXiv 1907.08610, with the schedule of Jordan 2024, arXiv 2404.00498: at
    first the average follows the weights closely, later more and more slowly.

    Parameters
    ----------
    params : list of mxnet.gluon.Parameter
        The parameters that are learned.
    period : int
        Steps between two averagings.
    num_steps : int
        Steps of the whole training.
    """

    def __init__(self, params, period, num_steps):
        self._params, self._period, self._num_steps = params, period, num_steps
        self.arrays = {}  # name: the average, on each device

    def step(self, number):
        """After step ``number`` (from 1): if it is due, update the average and copy it back."""
        is_last = number == self._num_steps
        if number % self._period and not is_last:
            return
        decay = 1.0 if is_last else 0.95**self._period * (number / self._num_steps) ** 3
        for param in self._params:
            fast = param.list_data()
            if param.name not in self.arrays:
                self.arrays[param.name] = [data.copy() for data in fast]
                continue
            for slow, data in zip(self.arrays[param.name], fast):
                slow[:] = decay * slow + (1 - decay) * data
                data[:] = slow

    def collect(self):
        """Return the averages for a checkpoint, by names that begin with ``lookahead:``."""
        pairs = self.arrays.items()
        return {f"lookahead:{name}": average[0].copyto(mx.cpu()) for name, average in pairs}

    def restore(self, arrays):
        """Continue from what :meth:`collect` returned; the arrays are NumPy's."""
        for param in self._params:
            saved = arrays.get(f"lookahead:{param.name}")
            if saved is not None:
                value = mx.nd.array(saved, dtype=param.dtype)
                self.arrays[param.name] = [value.copyto(ctx) for ctx in param.list_ctx()]
