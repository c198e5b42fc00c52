"""Updates on the workers, and the averaging of weights that may follow them."""

import math

import mxnet as mx
import numpy as np
from mxnet.ndarray._internal import _mp_adamw_update


class Lookahead:
    """A second set of weights that follows the first, and to which that returns now and then.

    Zhang et al. 2019, arXiv 1907.08610, with the schedule of Jordan 2024, arXiv 2404.00498: at
    first the average takes the weights over as they are, later less and less of them, and the
    training ends at the average.

    Parameters
    ----------
    params : list of mxnet.gluon.Parameter
        Those that are learned.
    period : int
        Steps between two averagings.
    num_steps : int
        Of the whole training.
    """

    def __init__(self, params, period, num_steps):
        self._params, self._period, self._num_steps = params, period, num_steps
        self.arrays = {}  # name: the average, on each device

    def step(self, number):
        """Move the average and the weights, if it is time, after step ``number`` (from 1)."""
        is_last = number == self._num_steps
        if number % self._period and not is_last:
            return
        kept = 1.0 if is_last else 0.95**self._period * (number / self._num_steps) ** 3
        for param in self._params:
            fast = param.list_data()
            if param.name not in self.arrays:
                self.arrays[param.name] = [data.copy() for data in fast]
                continue
            for slow, data in zip(self.arrays[param.name], fast):
                slow[:] = kept * slow + (1 - kept) * data
                data[:] = slow

    def restore(self, arrays):
        """Go on from averages, name: ndarray."""
        for param in self._params:
            if param.name in arrays:
                value = mx.nd.array(arrays[param.name], dtype=param.dtype)
                self.arrays[param.name] = [value.copyto(ctx) for ctx in param.list_ctx()]


class Adam(mx.optimizer.Adam):
    """MXNet's Adam, whose updates on a CPU do not hold up the next step.

    MXNet's ``adam_update`` reserves one of four working memories that convolutions reserve, too
    (it uses none), so that the next step's first layer would wait until the last gradient is there.
    AdamW's operator makes the same update without, as long as weights do not decay.
    """

    def __init__(self, **options):
        super().__init__(**options)
        self._one = mx.nd.ones(1, mx.cpu())

    def update(self, index, weight, grad, state):
        """Update a weight, and its two averages in ``state``."""
        is_plain = self.rescale_grad == 1 and not self.clip_gradient and not self._get_wd(index)
        if not is_plain or weight.dtype != np.float32 or weight.context.device_type != "cpu":
            super().update(index, weight, grad, state)
            return
        self._update_count(index)
        t = self._index_update_count[index]
        lr = self._get_lr(index) * math.sqrt(1 - self.beta2**t) / (1 - self.beta1**t)
        _mp_adamw_update(
            weight,
            grad,
            *state,
            weight,  # of full precision, as it is
            self._one,
            out=weight,
            lr=lr,
            eta=1,
            beta1=self.beta1,
            beta2=self.beta2,
            epsilon=self.epsilon,
        )


class NAG(mx.optimizer.NAG):
    """MXNet's Nesterov momentum, with weight decay that ends at the same bits every time.

    MXNet's ``nag_mom_update`` writes a weight and reads it again for the momentum's decay: the new
    one, or the old one where oneDNN has put the weight into another layout and a copy is written.
    Here it reads a copy, always of the old one. (To add the decay to the gradient before would take
    operators that hold up the next step, as Adam's does.)
    """

    def update_multi_precision(self, index, weight, grad, state):
        """Update a weight, and its momentum in ``state``."""
        decay = self._get_wd(index)
        if weight.dtype != np.float32 or state is None or not decay:
            super().update_multi_precision(index, weight, grad, state)
            return
        self._update_count(index)
        mx.nd.nag_mom_update(
            weight.copy(),
            grad,
            state,
            out=weight,
            lr=self._get_lr(index),
            wd=decay,
            momentum=self.momentum,
            rescale_grad=self.rescale_grad,
            clip_gradient=self.clip_gradient or -1,
        )


OURS = {"adam": Adam, "nag": NAG}


class WorkerTrainer(mx.gluon.Trainer):
    """A Trainer that updates on the workers, from gradients that all have added up.

    Parameters
    ----------
    params : mxnet.gluon.ParameterDict
    optimizer : str
    options : dict
        Of the optimizer.
    store : mxnet.kvstore.KVStore, optional
    lookahead : Lookahead, optional
        Told of every step.
    compression : dict, optional
        What MXNet calls ``compression_params``.
    """

    shares_states = False  # whether other workers change the optimizer's state, too

    def __init__(self, params, optimizer, options, store=None, lookahead=None, compression=None):
        if isinstance(optimizer, str) and optimizer.lower() in OURS:
            optimizer, options = OURS[optimizer.lower()](**options), None
        super().__init__(params, optimizer, options, store, compression, update_on_kvstore=False)
        self.lookahead = lookahead
        self._number = 0

    def begin_step(self, number, learning_rate):
        """Prepare step ``number`` of the whole training (from 1).

        The optimizer's own count is of updates: a training resumed with larger batches has made
        more of them than its steps tell, and float16 skips some.
        """
        self._number = number
        self.set_learning_rate(learning_rate)

    def create_state(self, index, weight):
        """Return the optimizer's state of a parameter, as it begins."""
        return self._optimizer.create_state_multi_precision(index, weight)

    def _update(self, ignore_stale_grad=False):
        super()._update(ignore_stale_grad)
        self._end_step()

    def _end_step(self):
        if self.lookahead:
            self.lookahead.step(self._number)
