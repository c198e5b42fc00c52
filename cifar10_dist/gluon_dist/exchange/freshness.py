"""Which gradients are fresh: backward has written them since the last update.

MXNet marks what backward writes, and an update takes the mark away. A worker, or a device, that had
no example is known by gradients without marks. Two things would hide it. A GAN's maker learns
through its judge, so that its backward pass also marks the judge's gradients. And after sums that
were not used for an update, the marks stay.
"""

import weakref
from typing import Sequence

from gluon_dist.common import protocols

import mxnet as mx

_everyone: "weakref.WeakSet[Marks]" = weakref.WeakSet()


class Marks:
    """The marks of one Trainer's gradients; those that may be of no use are kept aside.

    Parameters
    ----------
    params : list of mxnet.gluon.Parameter
        All of the Trainer's.
    """

    def __init__(self, params):
        self._params, self._aside, self._summed = params, set(), set()
        _everyone.add(self)

    def set_aside_others(self):
        """Keep aside what the backward pass of this step has left to other Trainers."""
        own = set(self._params)
        for other in _everyone - {self}:
            other._aside |= other._take(own)

    def void_others(self, devices):
        """Forget what was kept aside, where ``devices`` do not include its own: they had nothing.

        A gradient that is added to one before (``grad_req="add"``) stays.
        """
        self._aside = {
            (param, i)
            for param, i in self._aside
            if param.grad_req == "add" or param.list_ctx()[i] in devices
        }

    def note_sums(self):
        """Keep the marks for the update of these sums: without it they are of no use."""
        self._summed = self._take()

    def has_sums(self):
        """Return whether sums wait for their update; the same on all workers."""
        return bool(self._summed)

    def bring_back(self, with_sums):
        """Mark what was kept aside, and also what was summed; or forget the latter."""
        for param, i in self._aside | (self._summed if with_sums else set()):
            param.list_data()[i]._fresh_grad = True
        self._aside, self._summed = set(), set()

    def _take(self, but=()):
        """Take all marks away, and return whose they were: parameters, and numbers of devices."""
        known = [p for p in self._params if p._data is not None and p not in but]
        found = {(param, i) for param in known for i, flag in enumerate(is_fresh(param)) if flag}
        for param, i in found:
            param.list_data()[i]._fresh_grad = False
        return found


def backward(losses: Sequence[protocols.NDArray]) -> None:
    """Compute the gradients of all losses. Without a loss it does nothing.

    As ``mxnet.autograd.backward``, which fails where a worker has no example in a step, and so no
    loss.

    Parameters
    ----------
    losses : list of mxnet.nd.NDArray
        One for each device that has examples, recorded by ``autograd.record()``. It may be empty.

    Examples
    --------
    >>> x = mx.nd.array([3])
    >>> x.attach_grad()
    >>> with mx.autograd.record():
    ...     loss = x * x
    >>> gd.backward([loss])
    >>> float(x.grad.asscalar())
    6.0
    >>> gd.backward([])  # no example, no loss
    """
    losses = list(losses)
    devices = {loss.context for loss in losses}
    for marks in _everyone:
        marks.void_others(devices)
    if losses:
        mx.autograd.backward(losses)


def is_fresh(param):
    """Return for each device whether backward has written the gradient since the last update."""
    return [data._fresh_grad for data in param.list_data()]


def mark(param, fresh):
    """Mark the gradients of a parameter as fresh or not: a flag for each device."""
    for data, flag in zip(param.list_data(), fresh):
        data._fresh_grad = flag


def zero_unmarked(learned):
    """Set each gradient that backward has not reached to zero, on each device."""
    for param in learned:
        for data, grad in zip(param.list_data(), param.list_grad()):
            if not data._fresh_grad:
                grad[:] = 0


def zero_idle_gradients(learned):
    """Set the gradients of devices that backward has not reached to zero.

    Parameters
    ----------
    learned : list of mxnet.gluon.Parameter
        Those with gradients.

    Returns
    -------
    int
        Devices that backward has reached: they had examples.
    """
    if not learned:
        return 0
    devices = range(len(learned[0].list_ctx()))
    idle = [i for i in devices if not any(param.list_data()[i]._fresh_grad for param in learned)]
    for param in learned:
        for i in idle:
            param.list_grad()[i][:] = 0
            param.list_data()[i]._fresh_grad = True  # else MXNet refuses the update
    return len(devices) - len(idle)
