"""BatchNorm's running mean and variance, which each device moves for itself while it trains."""

from typing import Optional

from gluon_dist.workers import group
from gluon_dist.workers.operations import compare
from gluon_dist.workers.workers import Workers

import mxnet as mx
import numpy as np


def average_statistics(net: mx.gluon.Block, workers: Optional[Workers] = None) -> None:
    """Average BatchNorm's running mean and variance over all devices of all workers.

    Each device keeps its own while training, so that workers with equal weights would otherwise
    report different accuracies. All workers make this call before they evaluate or save.

    Parameters
    ----------
    net : mxnet.gluon.Block
        Initialized. If it has no such statistics, nothing happens.
    workers : Workers, optional
        Default: those of the job, by the store of this process.

    Raises
    ------
    ValueError
        If the workers make different calls, or their networks differ.

    Examples
    --------
    >>> net = mx.gluon.nn.BatchNorm(in_channels=3)
    >>> net.initialize()
    >>> average_statistics(net)
    """
    workers = group.workers() if workers is None else workers
    params = running_statistics(net)
    compare(workers, "average_statistics", *(f"statistics {param.shape}" for param in params))
    if not params:
        return
    num_devices = len(params[0].list_ctx())
    sums = [sum(data.asnumpy() for data in param.list_data()) for param in params]
    total = workers.all_reduce(np.float32(np.concatenate([*map(np.ravel, sums), [num_devices]])))
    mean = total[:-1] / total[-1]
    ends = np.cumsum([part.size for part in sums])
    for param, values in zip(params, np.split(mean, ends[:-1])):
        for data in param.list_data():  # set_data would reset the store, and dist_async refuses
            data[:] = values.reshape(param.shape)


def running_statistics(net):
    """Wait for queued work; return BatchNorm's running means and variances, sorted by name.

    In a network that is hybridized with ``static_shape``, MXNet's engine believes that backward
    only reads them. So reading them does not wait for backward, and gives the values before it.
    """
    mx.nd.waitall()
    params = sorted(net.collect_params().items())
    named = getattr(net, "statistics", None)  # of a network with names of its own
    return [p for name, p in params if ("running_" in name if named is None else name in named)]
