"""Seeds of the random numbers that a network draws while it is trained, as for dropout."""

import mxnet as mx
import numpy as np

from networks.by_name import network_json


def seed_step(seed, epoch, step, rank):
    """Make the random numbers of a step depend on (seed, epoch, step, rank), not on earlier steps.

    So a resumed training draws the same numbers as one that was not stopped. Each worker draws its
    own. A call takes 6 ms, as MXNet has 1024 generators.
    """
    mix = np.random.RandomState([seed, epoch, step, rank])
    mx.random.seed(int(mix.randint(2**31)))


def draws_numbers(net, optimizer):
    """Return whether training a network with this optimizer draws random numbers."""
    network = network_json(net)
    operators = ("Dropout", "_random", "_sample", "RNN")
    return optimizer.lower() == "sgld" or any(f'"op": "{name}' in network for name in operators)
