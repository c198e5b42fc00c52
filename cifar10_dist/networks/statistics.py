"""BatchNorm's running mean and variance, which each device moves for itself while it trains."""

import mxnet as mx


def running_statistics(net):
    """Return the parameters with BatchNorm's running means and variances, sorted, once they rest.

    To MXNet's engine the backward pass of a network that is hybridized with ``static_shape`` only
    reads them: to ask for their values is not to wait for it, and gives those from before the step.
    """
    mx.nd.waitall()
    return [param for name, param in sorted(net.collect_params().items()) if "running_" in name]
