"""BatchNorm's running statistics, which each device keeps of its own within an epoch."""

from gluon_dist.workers.statistics import running_statistics

import mxnet as mx
import numpy as np

BY_LAYER, BY_NAME = "statistics:by_layer", "statistics"  # in the file; an older version's order


def gather_statistics(net, workers):
    """Collect BatchNorm's running mean and variance, which differ within an epoch, from everybody.

    Returns
    -------
    ndarray of float32, shape (workers, devices, n)
        Of the worker with the most devices; what others lack is NaN.
    """
    params = running_statistics(net)
    if not params:
        return np.zeros((workers.count, 1, 0), np.float32)
    num_devices = len(params[0].list_ctx())
    most = int(workers.all_gather([num_devices]).max())
    own = np.full((most, sum(param.list_data()[0].size for param in params)), np.nan, np.float32)
    for device in range(num_devices):
        own[device] = np.concatenate([p.list_data()[device].asnumpy().ravel() for p in params])
    pairs = np.concatenate([own.ravel(), np.zeros(own.size % 2, np.float32)])
    rows = workers.all_gather(pairs.view(np.float64)).view(np.float32)  # bits, whatever they mean
    return rows[:, : own.size].reshape(workers.count, *own.shape)


def restore_statistics(net, arrays, rank, prefix=""):
    """Give each device of this worker its own statistics again, if there are as many as before.

    Parameters
    ----------
    arrays : dict of ndarray
        Those of the file; of shape (workers, devices, n) if it has statistics.
    rank : int
    prefix : str
        Before the name in the file.
    """
    params, rows = running_statistics(net), arrays.get(prefix + BY_LAYER)
    if rows is None:
        params, rows = sorted(params, key=lambda p: p.name), arrays.get(prefix + BY_NAME)
    if rows is None:
        return
    for device in range(len(params[0].list_ctx()) if params else 0):
        start = 0
        for param in params:
            data = param.list_data()[device]
            data[:] = rows[rank, device, start : start + data.size].reshape(data.shape)
            start += data.size


def mean_statistics(net, rows):
    """Return the mean over all devices of all workers, an array for each parameter by name."""
    params = running_statistics(net)
    mean = np.nanmean(rows.astype(np.float64), axis=(0, 1)) if params else rows
    ends = np.cumsum([param.list_data()[0].size for param in params])
    return {
        param.name: mx.nd.array(values.reshape(param.shape), dtype="float32")
        for param, values in zip(params, np.split(mean, ends[:-1]) if params else ())
    }
