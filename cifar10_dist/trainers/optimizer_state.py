"""The state of an optimizer that updates on the workers, as arrays and plain numbers, and back."""

import mxnet as mx

# Numbers that some optimizers move from step to step, besides the counters that all have.
MOVING = ("m_schedule", "last_lr", "cur_lr", "lbmult")


def collect(trainer, lookahead=None):
    """Take down momenta, step counters, loss scale, and the average of the weights.

    All devices of all workers make the same updates from the same sums, so the first device's state
    is everybody's.

    Parameters
    ----------
    trainer : mxnet.gluon.Trainer
    lookahead : lookahead.Lookahead, optional

    Returns
    -------
    facts : dict
    arrays : dict of NDArray
        See :meth:`base.JobTrainer.collect_state`.
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
        f"optimizer:{names[index]}:{number}": leaf.copyto(mx.cpu())
        for index, state in updater.states.items()
        for number, leaf in enumerate(_leaves(state))
    }
    for name, averages in lookahead.arrays.items() if lookahead else ():
        arrays[f"lookahead:{name}"] = averages[0].copyto(mx.cpu())
    return facts, arrays


def restore(trainer, lookahead, facts, arrays):
    """Put back what :func:`collect` took down, on every device.

    Parameters
    ----------
    trainer : mxnet.gluon.Trainer
        With the same optimizer and network, not yet used.
    lookahead : lookahead.Lookahead or None
    facts : dict
    arrays : dict of ndarray
    """
    optimizer = trainer._optimizer
    for updater, ctx in zip(trainer._updaters, trainer._contexts):
        for index, param in enumerate(trainer._params):
            if param.name not in facts["counts"] or param.grad_req == "null":
                continue
            state = optimizer.create_state_multi_precision(index, param.data(ctx))
            for number, leaf in enumerate(_leaves(state)):
                # With --mom 0 no momentum was saved: one that is set now starts at zero.
                value = arrays.get(f"optimizer:{param.name}:{number}")
                if value is not None:
                    leaf[:] = mx.nd.array(value, dtype=value.dtype)
            updater.states[index], updater.states_synced[index] = state, True
    if lookahead:
        begun = {n.partition(":")[2]: a for n, a in arrays.items() if n.startswith("lookahead:")}
        lookahead.restore(begun)
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


def _leaves(state):
    """Yield the arrays of an optimizer's state: one, None, or nested tuples of these."""
    if isinstance(state, (tuple, list)):
        for part in state:
            yield from _leaves(part)
    elif state is not None:
        yield state
