"""What a training holds besides its parameters, as arrays and plain numbers, and back again."""

import mxnet as mx
import numpy as np

from networks.statistics import running_statistics

# Numbers that some optimizers move from step to step, besides the counters that all have.
MOVING = ("m_schedule", "last_lr", "cur_lr", "lbmult")


def collect_optimizer(trainer):
    """Take down the state of the optimizer: momenta, step counters, loss scale.

    All devices of all workers make the same updates from the same sums, so the first device's state
    is everybody's.

    Parameters
    ----------
    trainer : trainers.worker_trainer.WorkerTrainer
        That updates on the workers: what the servers of ``dist_async`` hold cannot be asked for.

    Returns
    -------
    facts : dict
        Plain numbers, for JSON.
    arrays : dict of NDArray
        Copies on the CPU that do not change any more; they may still be on their way.
    """
    optimizer, updater = trainer._optimizer, trainer._updaters[0]
    counts = optimizer._all_index_update_counts.get(trainer._contexts[0].device_id, {})
    names = [param.name for param in trainer._params]
    facts = {
        "name": type(optimizer).__name__,
        "num_update": optimizer.num_update,
        "counts": {names[index]: count for index, count in counts.items()},
        "moving": {name: getattr(optimizer, name) for name in MOVING if hasattr(optimizer, name)},
    }
    scaler = getattr(trainer, "_amp_loss_scaler", None)
    if scaler is not None:
        facts["loss_scaler"] = vars(scaler).copy()
    arrays = {
        f"optimizer:{names[index]}:{place}": leaf.copyto(mx.cpu())
        for index, state in updater.states.items()
        for place, leaf in enumerate(leaves(state))
    }
    for name, averages in trainer.lookahead.arrays.items() if trainer.lookahead else ():
        arrays[f"lookahead:{name}"] = averages[0].copyto(mx.cpu())
    return facts, arrays


def restore_optimizer(trainer, facts, arrays):
    """Put back what :func:`collect_optimizer` took down, on every device.

    Parameters
    ----------
    trainer : trainers.worker_trainer.WorkerTrainer
        With the same optimizer and network, not yet used.
    facts : dict
    arrays : dict of ndarray
    """
    optimizer = trainer._optimizer
    for updater, ctx in zip(trainer._updaters, trainer._contexts):
        for index, param in enumerate(trainer._params):
            if param.name not in facts["counts"] or param.grad_req == "null":
                continue
            state = optimizer.create_state_multi_precision(index, param.data(ctx))
            for place, leaf in enumerate(leaves(state)):
                # Nothing was kept of a momentum that was 0: another one begins at 0.
                value = arrays.get(f"optimizer:{param.name}:{place}")
                if value is not None:
                    leaf[:] = mx.nd.array(value, dtype=value.dtype)
            updater.states[index], updater.states_synced[index] = state, True
    if trainer.lookahead:
        begun = {n.partition(":")[2]: a for n, a in arrays.items() if n.startswith("lookahead:")}
        trainer.lookahead.restore(begun)
    index_of = trainer._param2idx
    counts = {index_of[name]: count for name, count in facts["counts"].items()}
    for ctx in trainer._contexts:
        optimizer._all_index_update_counts[ctx.device_id] = dict(counts)
    optimizer._set_current_context(trainer._contexts[0].device_id)
    optimizer.num_update = facts["num_update"]
    for name, value in facts["moving"].items():
        setattr(optimizer, name, value)
    scaler = getattr(trainer, "_amp_loss_scaler", None)
    if scaler is not None and "loss_scaler" in facts:
        vars(scaler).update(facts["loss_scaler"])


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
    most = int(workers.gather([num_devices]).max())
    own = np.full((most, sum(param.list_data()[0].size for param in params)), np.nan, np.float32)
    for device in range(num_devices):
        own[device] = np.concatenate([p.list_data()[device].asnumpy().ravel() for p in params])
    pairs = np.concatenate([own.ravel(), np.zeros(own.size % 2, np.float32)])
    rows = workers.gather(pairs.view(np.float64)).view(np.float32)  # bits, whatever they mean
    return rows[:, : own.size].reshape(workers.count, *own.shape)


def restore_statistics(net, rows, rank):
    """Give each device of this worker its own statistics again, if there are as many as before.

    Parameters
    ----------
    rows : ndarray of float32, shape (workers, devices, n)
    rank : int
    """
    params = running_statistics(net)
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


def leaves(state):
    """Yield the arrays of an optimizer's state: one, None, or nested tuples of these."""
    if isinstance(state, (tuple, list)):
        for part in state:
            yield from leaves(part)
    elif state is not None:
        yield state
