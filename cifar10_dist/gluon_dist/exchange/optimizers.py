"""Three of MXNet's optimizers, corrected: Adam was slow, NAG not repeatable, Adamax made NaN."""

import math

import mxnet as mx
import numpy as np
from mxnet.ndarray._internal import _mp_adamw_update


class Adam(mx.optimizer.Adam):
    """MXNet's Adam, but on a CPU the next step does not wait for its updates.

    MXNet's ``adam_update`` reserves a working memory that it does not use. There are four, and
    convolutions need them, so the next step's first layer would wait for the last gradient. AdamW's
    operator makes the same update without it, as long as there is no weight decay.
    """

    def __init__(self, **options):
        super().__init__(**options)
        self._scale = 1.0, mx.nd.ones(1, mx.cpu())  # no attribute that a checkpoint would restore

    def update(self, index, weight, grad, state):
        """Update a weight, and its two averages in ``state``."""
        is_plain = not self.clip_gradient and not self._get_wd(index)
        if not is_plain or weight.dtype != np.float32 or weight.context.device_type != "cpu":
            super().update(index, weight, grad, state)
            return
        if self.rescale_grad != self._scale[0]:
            self._scale = self.rescale_grad, mx.nd.full(1, self.rescale_grad, mx.cpu())
        self._update_count(index)
        t = self._index_update_count[index]
        lr = self._get_lr(index) * math.sqrt(1 - self.beta2**t) / (1 - self.beta1**t)
        _mp_adamw_update(
            weight,
            grad,
            *state,
            weight,  # in full precision already
            self._scale[1],
            out=weight,
            lr=lr,
            eta=1,
            beta1=self.beta1,
            beta2=self.beta2,
            epsilon=self.epsilon,
        )


class NAG(mx.optimizer.NAG):
    """MXNet's Nesterov momentum, with weight decay that gives the same bits every time.

    MXNet's ``nag_mom_update`` writes a weight, then reads it for the momentum's decay. It reads the
    new weight, or the old one if oneDNN keeps the weight in a layout of its own. Here it always
    reads a copy of the old one. (Adding the decay to the gradient first would need operators for
    which the next step waits, as for MXNet's Adam.)
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
    """MXNet's Adamax, but a weight whose gradients were all zero does not become NaN.

    Such weights are common: those before a ReLU that never fires have no gradient. MXNet divides by
    the largest past gradient, here 0 by 0.
    """

    epsilon = 1e-8  # as in PyTorch

    def update(self, index, weight, grad, state):
        """Update a weight, and its average and largest gradient in ``state``."""
        largest = state[1]
        largest[:] = mx.nd.maximum(largest, self.epsilon / self.beta2)  # MXNet multiplies by beta2
        super().update(index, weight, grad, state)


OURS = {"adam": Adam, "nag": NAG}  # where workers update
EVERYWHERE = {"adamax": Adamax}  # and on the servers of dist_async


def optimizer_class(name, on_servers=False):
    """Return the class of an optimizer by MXNet's name, corrected if it is one of these.

    Raises
    ------
    ValueError
        If MXNet has no such optimizer.
    """
    registry, name = mx.optimizer.Optimizer.opt_registry, name.lower()
    if name not in registry:
        raise ValueError(f"optimizer {name!r}: not one of {', '.join(sorted(registry))}")
    ours = {} if on_servers else OURS
    return ours.get(name) or EVERYWHERE.get(name) or registry[name]
