"""The seeds of the random numbers that a training draws, for dropout and the like."""

import mxnet as mx
import numpy as np

from networks.by_name import network_json

# Seeding takes MXNet 6 ms (1024 generators), so it is not done in every step. A training that was
# stopped between two seedings draws those since the last one again, by forward passes.
PERIOD = 50


class Seeds:
    """Makes the random numbers of a step depend on (seed, epoch, step, rank), not on the past.

    Parameters
    ----------
    seed, rank : int
        Workers draw differently.
    optimizer : str
        SGLD draws in its updates, which forward passes do not repeat: seeded in every step.
    """

    def __init__(self, seed, rank, optimizer=""):
        self._seed, self._rank = seed, rank
        self._period = 1 if optimizer.lower() == "sgld" else PERIOD

    def begin(self, step):
        """Return the step of the seeding that ``step`` depends on."""
        return step - step % self._period

    def step(self, epoch, step):
        """Seed MXNet's generators where it is time to."""
        if step % self._period == 0:
            mix = np.random.RandomState([self._seed, epoch, step, self._rank])
            mx.random.seed(int(mix.randint(2**31)))


def draws_numbers(net, optimizer):
    """Tell whether training a network with this optimizer draws random numbers."""
    network = network_json(net)
    operators = ("Dropout", "_random", "_sample", "RNN")
    return optimizer.lower() == "sgld" or any(f'"op": "{name}' in network for name in operators)
