"""How gradients are added up over devices and workers: what every way of doing it can do."""

from gluon_dist.exchange.freshness import is_fresh, mark

import mxnet as mx


class Exchange:
    """Adds gradients up. This class is for one device and does nothing; other ways inherit from it.

    :class:`gluon_dist.Trainer` calls the methods in this order.

    Attributes
    ----------
    rescale : float
        What the sums will be multiplied by when weights are updated: 1 / batch size. The Trainer
        writes it before every :meth:`add_up`; None where it does not know it yet.
    attached : list of tuple
        Parameters, and the arrays that hold their gradients, one for each device; those alone that
        must lie there.
    """

    attached = ()

    rescale = 1.0

    def move_gradients(self, params):
        """Place the gradients of parameters elsewhere; once.

        Parameters
        ----------
        params : list of mxnet.gluon.Parameter
            Initialized, in the order of the layers; with gradients, or frozen.
        """

    def connect(self, workers):
        """Prepare the exchange with these ``Workers``, once; their store has keys to take."""

    def add_up(self):
        """Replace every gradient by its sum; called in every step."""

    def explain(self):
        """Return lines for the user on what this way does."""
        return []

    def measure_steps(self):
        """Return how long each step since the last call took this worker.

        Returns
        -------
        list of tuple
            Seconds of computing, from the sums of the step before to this step's gradients (NaN in
            the first step), and of waiting for their sums. Empty if nobody measures.
        """
        return []


def attach_gradients(param, grads):
    """Let backward write the gradient of a parameter to these arrays, one for each device.

    They begin with what is there now. A frozen parameter, whose ``grad_req`` is null, has none.
    """
    if param.grad_req == "null":
        return
    before, fresh = param._grad, is_fresh(param)
    param._grad = grads
    mx.autograd.mark_variables(param.list_data(), grads, param.grad_req)
    for grad, old in zip(grads, before):  # backward may have been faster
        grad[:] = old
    mark(param, fresh)
