"""What of a user's networks and trainers is saved, by which names, and how it is put back."""

from gluon_dist.checkpoint.statistics import (
    BY_LAYER,
    gather_statistics,
    mean_statistics,
    restore_statistics,
)
from gluon_dist.common.errors import UsageError
from gluon_dist.common.messages import warn

import mxnet as mx


class Contents:
    """The networks and trainers of a program, by the program's own names; of one, the name is "".

    In the files a parameter is named as by ``Block.save_parameters`` (``features.0.weight``): what
    Gluon calls it depends on how many blocks the process made before. The network's name stands
    before it (``maker.features.0.weight``), and before arrays of a trainer (``maker:...``).

    Parameters
    ----------
    nets : dict of str to Block
    trainers : dict of str to gluon_dist.Trainer
    workers : Workers

    Raises
    ------
    ValueError
        If a trainer has a parameter that is in none of the networks.
    """

    def __init__(self, nets, trainers, workers):
        self._nets, self._trainers, self._workers = nets, trainers, workers
        found = {id(param) for param in self._params().values()}
        for trainer in trainers.values():
            for param in trainer.params:
                if id(param) not in found:
                    raise ValueError(
                        f"{param.name}: a trainer has it, and it is in no network of net "
                        "(as an attribute of a Block), so it would not be saved"
                    )

    @property
    def devices(self):
        """Those of the first trainer."""
        return next(iter(self._trainers.values())).devices

    @property
    def unsaved(self):
        """What is never saved, in words for the user."""
        return {trainer.unsaved for trainer in self._trainers.values() if trainer.unsaved}

    def count_devices(self):
        """Return how many devices each worker has; all make this call."""
        return self._workers.all_gather_int(len(self.devices))

    def collect(self, is_within_epoch, is_wanted):
        """Take copies of what changes, for a thread to write; all workers make this call.

        Parameters
        ----------
        is_within_epoch : bool
            BatchNorm's statistics then differ by device: those of each, and their mean, are saved.
        is_wanted : bool
            Whether this worker saves.

        Returns
        -------
        params, arrays : dict of NDArray
        facts : dict
            Of each trainer, for the manifest.
        """
        params, arrays, facts = {}, {}, {}
        for trainer in self._trainers.values():
            trainer.pull_weights()  # dist_async: other workers have updated them on the servers
        mx.nd.waitall()  # with static_shape, reading statistics does not wait for backward
        for key, net in self._nets.items():
            rows = gather_statistics(net, self._workers) if is_within_epoch else None
            if not is_wanted:
                continue
            names = net._collect_params_with_prefix()
            values = {name: copy_of(param) for name, param in names.items()}
            if is_within_epoch:
                mean = mean_statistics(net, rows)
                values.update({n: mean[p.name] for n, p in names.items() if p.name in mean})
                arrays[f"{key}:{BY_LAYER}"] = mx.nd.array(rows, dtype="float32")
            params.update({_join(key, name): value for name, value in values.items()})
        for key, trainer in self._trainers.items() if is_wanted else ():
            facts[key], state = trainer.collect_state(self._names_of(trainer))
            arrays.update({f"{key}:{name}": value for name, value in state.items()})
        return params, arrays, facts

    def check(self, name, manifest, params):
        """See that a checkpoint is of these networks and trainers; nothing is changed.

        Parameters
        ----------
        name : str
            Of the checkpoint, for messages.
        manifest : Manifest
        params : dict of NDArray

        Raises
        ------
        UsageError
            Naming the first parameter that does not fit.
        """
        if "trainers" not in manifest.program:
            raise UsageError(f"{name}: another program saved it, not gluon_dist.Checkpoint")
        saved = manifest.program["trainers"]
        if set(saved) != set(self._trainers):
            raise UsageError(f"{name}: of {_listed(saved)}, and here is {_listed(self._trainers)}")
        own = self._params()
        for key, param in own.items():
            if key not in params:
                raise UsageError(f"{name}.params: of another network: it has no {key}")
            if not _fits(param.shape, params[key].shape):
                found = f"{params[key].shape}, which is {param.shape} here"
                raise UsageError(f"{name}.params: of another network: {key} has the shape {found}")
        for key in params:
            if key not in own:
                raise UsageError(f"{name}.params: of another network: {key} is not in this one")

    def put_back(self, manifest, params, arrays):
        """Give every device what was saved, the arrays as NumPy's; all workers make this call."""
        for name, param in self._params().items():
            param._load_init(params[name], None, cast_dtype=True)
        for key, trainer in self._trainers.items():
            own = {n.partition(":")[2]: a for n, a in arrays.items() if n.startswith(f"{key}:")}
            facts = manifest.program["trainers"][key]
            trainer.restore_state(facts, own, self._names_of(trainer))
            if not trainer.unsaved and self._workers.rank == 0:
                _tell_of_another(key, facts, type(trainer.optimizer).__name__)
        is_as_before = self.count_devices() == manifest.devices
        for key, net in self._nets.items():
            if is_as_before:  # else the mean stays
                restore_statistics(net, arrays, self._workers.rank, f"{key}:")

    def _params(self):
        """Return all parameters by their names in the file; a shared one has several."""
        return {
            _join(key, name): param
            for key, net in self._nets.items()
            for name, param in net._collect_params_with_prefix().items()
        }

    def _names_of(self, trainer):
        """Return the names of a trainer's parameters in the file, in the trainer's order."""
        names = {id(param): name for name, param in self._params().items()}
        return [names[id(param)] for param in trainer.params]


def copy_of(param):
    """Return a copy of a parameter on the CPU, of its first device.

    Raises
    ------
    ValueError
        If it has no values yet.
    """
    if param._data is None:
        raise ValueError(
            f"{param.name}: it has no values to save: use the network once, or net.infer_shape(x)"
        )
    return param.list_data()[0].copyto(mx.cpu())


def _tell_of_another(key, facts, name):
    saved = facts["name"] if facts else "none, as the servers had it,"
    if saved != name:
        whose = f" of {key}" if key else ""
        warn(f"the optimizer{whose} is {name}, and {saved} was saved: it begins anew")


def _join(key, name):
    return f"{key}.{name}" if key else name


def _listed(trainers):
    names = ", ".join(sorted(trainers))
    return f"the trainers {names}" if names else "one trainer without a name"


def _fits(shape, found):
    """Return whether an array goes into a parameter, some of whose numbers may be unknown: 0."""
    return shape is None or (
        len(shape) == len(found) and all(a in (0, -1, b) for a, b in zip(shape, found))
    )
