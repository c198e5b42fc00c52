"""Checks for NaN and infinite numbers, with which a training cannot continue."""

import math

from gluon_dist.common.errors import Diverged
from gluon_dist.common.messages import warn

import mxnet as mx
import numpy as np


def first_not_finite(arrays):
    """Return the name of the first array with a number that is not finite, or None.

    Parameters
    ----------
    arrays : iterable of (str, NDArray)
        Whole numbers are finite.
    """
    floats = (each for each in arrays if np.dtype(each[1].dtype).kind not in "iub")
    flags = [(name, mx.nd.all_finite(array)) for name, array in floats]
    return next((name for name, flag in flags if not flag.asscalar()), None)


def check_parameters(net, when, advice):
    """Raise if a parameter is not finite; on all workers alike, but for BatchNorm's statistics.

    Gradients are not checked: in float16 they may be infinite, and their update is skipped.

    Parameters
    ----------
    net : mxnet.gluon.Block
    when : str
        The beginning of the message.
    advice : str
        Its end.

    Raises
    ------
    Diverged
    """
    params = net.collect_params().values()
    name = first_not_finite((param.name, data) for param in params for data in param.list_data())
    if name:
        raise Diverged(
            f"{when}: {name} is not finite: the training has diverged and is not saved; {advice}"
        )


def warn_of_scores(outputs, when):
    """Warn if the network's scores of a batch are not finite, though its parameters are."""
    if first_not_finite(("", output) for output in outputs) is not None:
        warn(f"{when}: the loss is not finite, as the scores are not")


def warn_of_loss(loss, when):
    """Warn if the loss of a test is not finite."""
    if not math.isfinite(loss):
        warn(f"{when}: the test loss is not finite")
