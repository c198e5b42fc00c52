"""BatchNorm's running mean and variance, which differ between devices while they train."""

from typing import List, Optional

from gluon_dist.common import protocols
from gluon_dist.workers import group
from gluon_dist.workers.operations import compare
from gluon_dist.workers.workers import Workers

import mxnet as mx
import numpy as np


def average_statistics(net: protocols.Block, workers: Optional[Workers] = None) -> None:
    """Average BatchNorm's running mean and variance over all devices of all workers.

    Each device moves its own while it trains. So workers with equal weights would report different
    accuracies. All workers make this call before they evaluate or save the network;
    :class:`Checkpoint` does not make it. Horovod has no such
    function: there each worker keeps its own.

    Parameters
    ----------
    net : mxnet.gluon.Block
        Initialized. It may have no such statistics: then nothing happens.
    workers : Workers, optional
        Leave it out: the workers of the job.

    Raises
    ------
    ValueError
        If the workers make different calls, or their networks differ.

    Examples
    --------
    >>> devices = [mx.cpu(0), mx.cpu(1)]
    >>> norm = mx.gluon.nn.BatchNorm(in_channels=1)
    >>> norm.initialize(ctx=devices)
    >>> norm.running_mean.data(mx.cpu(1))[:] = 6  # 0 on the other device
    >>> gd.average_statistics(norm)
    >>> float(norm.running_mean.data(mx.cpu(0)).asscalar())
    3.0
    """
    workers = group.workers() if workers is None else workers
    params = running_statistics(net)
    compare(workers, "average_statistics", *(f"statistics {param.shape}" for param in params))
    if not params:
        return
    num_devices = len(params[0].list_ctx())
    sums = [sum(data.asnumpy() for data in param.list_data()) for param in params]
    own = np.float32(np.concatenate([*map(np.ravel, sums), [num_devices]]))
    total = workers.collectives.all_gather(own).sum(axis=0)  # by rank: the same in every run
    mean = total[:-1] / total[-1]
    ends = np.cumsum([part.size for part in sums])
    for param, values in zip(params, np.split(mean, ends[:-1])):
        for data in param.list_data():  # set_data would reset the store, and dist_async refuses
            data[:] = values.reshape(param.shape)


def running_statistics(net: mx.gluon.Block) -> List[mx.gluon.Parameter]:
    """Wait for queued work; return BatchNorm's running means and variances, layer by layer.

    Names would not do for an order: Gluon counts them on, and batchnorm10 comes before batchnorm9.
    In a network that is hybridized with ``static_shape``, MXNet's engine believes that backward
    only reads them. So reading them does not wait for backward, and gives the values before it.
    """
    mx.nd.waitall()
    params = net.collect_params().items()
    named = getattr(net, "statistics", None)  # of a network with names of its own
    return [p for name, p in params if ("running_" in name if named is None else name in named)]
