"""The state of an optimizer that updates on the workers, as arrays and plain numbers, and back."""

import math

import mxnet as mx
import numpy as np

# Numbers that some optimizers move from step to step, besides the counters that all have.
COUNTED = ("num_update", "begin_num_update", "rescale_grad")  # restored by themselves, or not
MOVING = ("m_schedule", "last_lr", "cur_lr", "lbmult")


def numbers_of(optimizer):
    """Return the numbers, and lists of numbers, that an optimizer and its scheduler have.

    Classes of the user's, too, may move some from step to step, as ``set_learning_rate`` does.
    """
    parts = {"optimizer": optimizer, "lr_scheduler": optimizer.lr_scheduler}
    return {
        part: {
            name: _plain(value)
            for name, value in (vars(thing).items() if thing is not None else ())
            if _is_plain(value) and name not in COUNTED
        }
        for part, thing in parts.items()
    }


def collect(trainer, names=None):
    """Take down momenta, step counters, numbers and loss scale.

    All devices of all workers make the same updates from the same sums, so the first device's state
    is everybody's.

    Parameters
    ----------
    trainer : gluon_dist.Trainer
    names : list of str, optional
        Of its parameters, in its order; default: those that Gluon gave them.

    Returns
    -------
    facts : dict
    arrays : dict of NDArray
        See :meth:`gluon_dist.Trainer.collect_state`.
    """
    optimizer, updater = trainer._optimizer, trainer._updaters[0]
    counts = optimizer._all_index_update_counts.get(trainer._contexts[0].device_id, {})
    names = names or [param.name for param in trainer._params]
    facts = {
        "name": type(optimizer).__name__,
        "num_update": optimizer.num_update,
        "counts": {names[index]: count for index, count in counts.items()},
        "moving": {name: getattr(optimizer, name) for name in MOVING if hasattr(optimizer, name)},
        "numbers": numbers_of(optimizer),
        "first_numbers": trainer.first_numbers,
    }
    scaler = getattr(trainer, "_amp_loss_scaler", None)
    if scaler is not None:
        facts["loss_scaler"] = vars(scaler).copy()
    arrays = {
        f"optimizer:{names[index]}:{number}": leaf.copyto(mx.cpu())
        for index, state in updater.states.items()
        for number, leaf in enumerate(_leaves(state))
    }
    return facts, arrays


def restore(trainer, facts, arrays, names=None):
    """Put back what :func:`collect` took down, on every device.

    Parameters
    ----------
    trainer : mxnet.gluon.Trainer
        With the same optimizer and network, not yet used.
    facts : dict
    arrays : dict of ndarray
    names : list of str, optional
        As of :func:`collect`.
    """
    optimizer = trainer._optimizer
    names = names or [param.name for param in trainer._params]
    for updater, ctx in zip(trainer._updaters, trainer._contexts):
        for index, param in enumerate(trainer._params):
            if names[index] not in facts["counts"]:
                continue
            state = optimizer.create_state_multi_precision(index, param.data(ctx))
            for number, leaf in enumerate(_leaves(state)):
                # With --mom 0 no momentum was saved: one that is set now starts at zero.
                value = arrays.get(f"optimizer:{names[index]}:{number}")
                if value is not None:
                    leaf[:] = mx.nd.array(value, dtype=value.dtype)
            updater.states[index], updater.states_synced[index] = state, True
    index_of = {name: index for index, name in enumerate(names)}
    counts = {index_of[name]: n for name, n in facts["counts"].items() if name in index_of}
    for ctx in trainer._contexts:
        optimizer._all_index_update_counts[ctx.device_id] = dict(counts)
    optimizer._set_current_context(trainer._contexts[0].device_id)
    optimizer.num_update = facts["num_update"]
    for name, value in facts["moving"].items():
        setattr(optimizer, name, value)
    _restore_numbers(trainer, facts)
    scaler = getattr(trainer, "_amp_loss_scaler", None)
    if scaler is not None and "loss_scaler" in facts:
        vars(scaler).update(facts["loss_scaler"])


def _restore_numbers(trainer, facts):
    """Put back numbers that have moved; one that the program now begins with otherwise stays."""
    for part, numbers in facts.get("numbers", {}).items():
        thing = trainer._optimizer if part == "optimizer" else trainer._optimizer.lr_scheduler
        before, now = facts["first_numbers"][part], trainer.first_numbers[part]
        for name, value in numbers.items():
            if thing is not None and name in now and before.get(name) == now[name]:
                setattr(thing, name, _number(value))


def _is_plain(value):
    kinds = (bool, int, float, np.number)
    return isinstance(value, kinds) or (
        isinstance(value, list) and all(isinstance(each, kinds) for each in value)
    )


def _number(value):
    """Return what :func:`_plain` has written."""
    if isinstance(value, list):
        return [_number(each) for each in value]
    return float(value) if isinstance(value, str) else value


def _plain(value):
    """Return a number, or a list of them, as JSON can hold it: not finite ones are texts."""
    if isinstance(value, list):
        return [_plain(each) for each in value]
    value = value.item() if isinstance(value, np.generic) else value
    return value if math.isfinite(value) else str(value)


def _leaves(state):
    """Yield the arrays of an optimizer's state: one, None, or nested tuples of these."""
    if isinstance(state, (tuple, list)):
        for part in state:
            yield from _leaves(part)
    elif state is not None:
        yield state
