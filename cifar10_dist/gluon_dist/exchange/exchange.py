"""How gradients are added up over devices and workers: what every way of doing it can do."""


class Exchange:
    """Adds gradients up. This class is for one device and does nothing; other ways inherit from it.

    :class:`gluon_dist.Trainer` calls the methods in this order.

    Attributes
    ----------
    rescale : float
        What the sums will be multiplied by when weights are updated: 1 / batch size. The Trainer
        writes it before every :meth:`add_up`.
    """

    rescale = 1.0

    def move_gradients(self, params):
        """Place the gradients of parameters elsewhere; once.

        Parameters
        ----------
        params : list of mxnet.gluon.Parameter
            Initialized, with gradients, in the order of the layers.
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


def is_fresh(param):
    """Return for each device whether backward has written the gradient since the last update."""
    return [data._fresh_grad for data in param.list_data()]


def mark(param, fresh):
    """Mark the gradients of a parameter as fresh or not: a flag for each device."""
    for data, flag in zip(param.list_data(), fresh):
        data._fresh_grad = flag
