"""Settings of the optimizer for ``dist_async``, whose gradients come late."""

import math


def allow_for_staleness(lr, momentum, num_workers):
    """Choose settings for gradients that come ``num_workers - 1`` updates late.

    In synchronous training one update averages the batches of N workers; here each worker's batch
    is an update of its own. So an update should move the weights N times less. (For optimizers
    without a momentum to set, such as Adam, the square root of N times less.) In the long run a
    gradient moves the weights by ``lr / (1 - momentum)``. The momentum is lowered first, because
    late updates act like momentum themselves: they continue in an old direction (Mitliagkas et
    al. 2016, arXiv 1605.09774). If momentum 0 is not enough, the rate is lowered, too.

    Parameters
    ----------
    lr : float
    momentum : float or None
        None for an optimizer that has none to set.
    num_workers : int

    Returns
    -------
    lr, momentum
    """
    if momentum is None:
        return lr / math.sqrt(num_workers), None
    share = num_workers * (1 - momentum)
    return lr / max(share, 1), max(0.0, 1 - share)


def explain_staleness(asked, chosen, num_workers):
    """Return lines that say which of the optimizer's options were not ``chosen`` as ``asked``."""
    changed = [
        f"{name.replace('_', ' ')} {chosen[name]:g} instead of {value:g}"
        for name, value in asked.items()
        if chosen.get(name, value) != value
    ]
    late = f"as the gradients of {num_workers} workers come late; --lr-scale none leaves them"
    return [f"dist_async: {', '.join(changed)}, {late}"] if changed else []
