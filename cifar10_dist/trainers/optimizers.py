"""Three of MXNet's optimizers, mended: one faster, one repeatable to the last bit, one finite."""

import math

import mxnet as mx
import numpy as np
from mxnet.ndarray._internal import _mp_adamw_update


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


class Adamax(mx.optimizer.Adamax):
    """MXNet's Adamax, which makes NaN of a weight whose gradients have all been zero.

    Such weights are common: a ReLU that never fires leaves those before it without a gradient.
    MXNet divides by the largest of the past gradients alone, so 0 by 0.
    """

    epsilon = 1e-8  # PyTorch's

    def update(self, index, weight, grad, state):
        """Update a weight, and in ``state`` its averaged and its largest gradient."""
        largest = state[1]
        largest[:] = mx.nd.maximum(largest, self.epsilon / self.beta2)  # MXNet multiplies by beta2
        super().update(index, weight, grad, state)


OURS = {"adam": Adam, "nag": NAG}  # where workers update
EVERYWHERE = {"adamax": Adamax}  # and on the servers of dist_async
