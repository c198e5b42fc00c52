"""BatchNorm's running mean and variance, which each device moves for itself while it trains."""

import mxnet as mx


def running_statistics(net):
    """Wait for queued work; return BatchNorm's running means and variances, sorted by name.

    In a network that is hybridized with ``static_shape``, MXNet's engine believes that backward
    only reads them. So reading them does not wait for backward, and gives the values before it.
    """
    mx.nd.waitall()
    params = sorted(net.collect_params().items())
    named = getattr(net, "statistics", None)  # of a network with names of its own
    return [p for name, p in params if ("running_" in name if named is None else name in named)]
