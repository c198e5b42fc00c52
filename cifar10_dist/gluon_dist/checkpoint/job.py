"""The loop of a training that can be stopped, killed and started again."""

import json
import os
import random
import sys
from typing import Any, Dict, Iterator, List, Mapping, Optional, Tuple, Union

from gluon_dist.checkpoint import files
from gluon_dist.checkpoint.candidates import first_usable, look_elsewhere
from gluon_dist.checkpoint.files import Broken
from gluon_dist.checkpoint.session import Session
from gluon_dist.checkpoint.statistics import (
    gather_statistics,
    mean_statistics,
    restore_statistics,
)
from gluon_dist.checkpoint.writer import Writer, new_run
from gluon_dist.common import protocols
from gluon_dist.common.messages import report, warn
from gluon_dist.contract import SAVED
from gluon_dist.exchange.trainer import Trainer
from gluon_dist.setup import environment
from gluon_dist.workers import group
from gluon_dist.workers.loader import Batch, DataLoader

import mxnet as mx
import numpy as np

Nets = Union[protocols.Block, Mapping[str, protocols.Block]]
Trainers = Union[Trainer, Mapping[str, Trainer]]


class Checkpoint:
    """Saves a training, and continues it from the last checkpoint.

    Write the loops of your program over :meth:`epochs` and :meth:`steps`. Each epoch is saved at
    its end. The signal TERM or USR1, sent to any worker, saves within the epoch and ends all
    workers with status 75. Start the same program again, and it continues from the newest complete
    checkpoint: with the same weights, optimizer and random numbers, as if it had not stopped.

    All workers create it and make the same calls. Worker 0 reads and writes the files.

    Parameters
    ----------
    prefix : str or path
        How the names of the files begin. After three epochs ``out/net`` has given
        ``out/net-0003.params``, ``out/net-0003.state`` (the trainers) and ``out/net-0003.json``,
        which is written last: it lists the other two. The folder is made if it is missing.
        ``net.load_parameters`` reads the ``.params`` of a single network.
    net : mxnet.gluon.Block or dict of str to Block
        Initialized. A dict is for several networks, as of a GAN; its names stay the same from run
        to run.
    trainer : Trainer or dict of str to Trainer
    keep : int, optional
        How many checkpoints of this run to keep. Default: all.

    Attributes
    ----------
    facts : dict
        What :meth:`save` was told in ``**facts``, from the checkpoint that was restored.

    Raises
    ------
    gluon_dist.common.failure.UsageError
        If no files can be written to the folder.
    ValueError
        If an argument is of another kind.

    Notes
    -----
    Your own variables are not saved. Attributes of a scheduler or an optimizer are saved if they
    are plain numbers. An exception in the loop ends it without saving.

    Examples
    --------
    >>> import os, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> net = mx.gluon.nn.Dense(1, in_units=1)
    >>> net.initialize()
    >>> trainer = gd.Trainer(net.collect_params(), "adam")
    >>> data = mx.gluon.data.ArrayDataset(mx.nd.ones((4, 1)), mx.nd.ones(4))
    >>> loader = gd.DataLoader(data, batch_size=2)
    >>> job = gd.Checkpoint(folder.name + "/net", net, trainer)
    >>> for epoch in job.epochs(2):
    ...     for batch in job.steps(loader):
    ...         x, y = batch
    ...         with mx.autograd.record():
    ...             losses = [mx.gluon.loss.L2Loss()(net(x), y)]
    ...         gd.backward(losses)
    ...         trainer.step(batch.global_size)
    >>> sorted(os.listdir(folder.name))[:3]
    ['net-0001.json', 'net-0001.params', 'net-0001.state']

    Run again, it has nothing left to do:

    >>> job = gd.Checkpoint(folder.name + "/net", net, trainer)
    >>> list(job.epochs(2))  # doctest: +ELLIPSIS
    Resumed from ...net-0002: 2 epochs done
    ...nothing is left to train: 2 epochs are done
    []
    >>> folder.cleanup()
    """

    def __init__(
        self,
        prefix: Union[str, "os.PathLike[str]"],
        net: Nets,
        trainer: Trainers,
        keep: Optional[int] = None,
    ) -> None:
        self._prefix, self._keep = str(prefix), keep
        self._nets: Dict[str, mx.gluon.Block] = _named(net, mx.gluon.Block, "net")
        self._trainers: Dict[str, Trainer] = _named(trainer, Trainer, "trainer")
        if keep is not None and not (isinstance(keep, int) and keep > 0):
            raise ValueError(f"keep must be a whole number from 1 on, or None, not {keep!r}")
        self._workers = group.workers()
        self._session = Session(self._prefix)
        self._session.__enter__()  # takes TERM and USR1 from now on
        self._is_open = False
        self._writer: Optional[Writer] = None
        self._epoch, self._step = 0, 0  # finished epochs, and steps of the next
        self._saved_loader: Optional[Mapping[str, object]] = None  # of the checkpoint's epoch
        self._loader: Optional[Mapping[str, object]] = None  # of this epoch
        self.facts: Dict[str, object] = {}

    def epochs(self, num_epochs: int) -> Iterator[int]:
        """Yield the numbers of the epochs that are left, and save each epoch when it is done.

        Parameters
        ----------
        num_epochs : int
            The number of epochs of the whole training. They are numbered from 0.

        Yields
        ------
        int

        Raises
        ------
        SystemExit
            With status 75, if a worker was asked to stop. Everything is saved then.
        OSError
            At the end, if the last checkpoint could not be written.
        """
        epoch, _ = self.restore()
        if epoch >= num_epochs and self._workers.rank == 0:
            report(f"{self._prefix}: nothing is left to train: {epoch} epochs are done")
        try:
            for number in range(epoch, num_epochs):
                self._epoch = number
                yield number
                is_last = number + 1 == num_epochs
                is_asked = self._session.stopper.is_requested_anywhere(self._workers)
                if is_last or is_asked:
                    self._session.stopper.lift_limit()
                self.save(number + 1)
                self._epoch, self._step = number + 1, 0
                if is_asked and not is_last:
                    self._end()
            self._finish()
        finally:
            self._close()

    def steps(self, loader: DataLoader) -> "Iterator[Batch]":
        """Yield the batches of this epoch that are left; save and end if a worker is asked to.

        Before each step it seeds the random numbers of MXNet, NumPy and Python, by the seed of the
        loader, the epoch, the step and the rank. This takes MXNet about 4 ms.

        Parameters
        ----------
        loader : DataLoader

        Yields
        ------
        gluon_dist.workers.loader.Batch

        Raises
        ------
        SystemExit
            As :meth:`epochs`.
        ValueError
            If the training was stopped within this epoch, and had another loader then.
        """
        first, self._loader = self._step, loader.facts()
        if first and self._saved_loader not in (None, self._loader):
            raise ValueError(
                f"{self._prefix}: saved within an epoch with {self._saved_loader}, which is "
                f"{self._loader} here: go on with the same loader, or remove that checkpoint"
            )
        batches = loader.epoch(self._epoch, first)
        for step in range(first, len(loader)):
            self._seed(loader.seed, step)
            yield next(batches)
            self._step = step + 1
            if self.should_stop() and self._workers_are_within(len(loader)):
                self._session.stopper.lift_limit()
                self.save(self._epoch, self._step)
                self._end()
        self._step = 0

    def restore(self) -> Tuple[int, int]:
        """Load the newest complete checkpoint, if there is one. All workers make this call.

        :meth:`epochs` and :meth:`save` make it for you. Only the first call loads.

        Returns
        -------
        epoch, step : int
            Where to continue: the number of finished epochs, and of finished steps in the next one.

        Raises
        ------
        gluon_dist.common.failure.UsageError
            If another job saves there, if another host has newer files, or if no checkpoint is
            usable.
        """
        if self._is_open:
            return self._epoch, self._step
        self._open()
        entries, workers = files.find(self._prefix), self._workers
        look_elsewhere(entries, f"{self._prefix}-*.json", True, workers)
        found: Optional[Tuple[Any, Any]] = None
        params = state = b""
        if workers.rank == 0 and entries:
            found, params, state = first_usable(entries, self._take)
        found = json.loads(workers.broadcast(json.dumps(found).encode()))
        run = found[1]["run"] if found else new_run()
        if workers.rank == 0:
            newest = found[0] if found else None
            self._writer = Writer(self._prefix, self._keep, run, self._session, newest)
        if found:
            params, state = workers.broadcast(params), workers.broadcast(state)
            self._put_back(*found, files.parse_params(params), files.parse_state(state))
        return self._epoch, self._step

    def save(self, epoch: int, step: int = 0, **facts: object) -> None:
        """Save now. All workers make this call. A thread writes the files.

        Parameters
        ----------
        epoch : int
            The number of finished epochs.
        step : int
            The number of finished steps in the next epoch; 0 at the end of an epoch.
        **facts
            Numbers, texts, and lists and dicts of these. They come back as ``facts``.

        Raises
        ------
        TypeError
            If ``facts`` do not fit into JSON.
        """
        json.dumps(facts)  # a TypeError now, not in the thread
        self.restore()
        workers, nets = self._workers, self._nets.items()
        statistics = {key: gather_statistics(net, workers) for key, net in nets} if step else {}
        worker_steps = workers.all_gather([step]).ravel().astype(int).tolist()
        devices = workers.all_gather([len(self._first_trainer.devices)]).ravel().astype(int)
        if self._writer is None:
            return
        self._writer.wait()
        params, arrays, optimizers = {}, {}, {}
        for key, net in nets:
            values = {
                name: param.list_data()[0].copyto(mx.cpu())
                for name, param in net._collect_params_with_prefix().items()
            }
            if step:
                mean, names = mean_statistics(net, statistics[key]), _names_of(net)
                values.update({names[name]: value for name, value in mean.items()})
                arrays[f"{key}:statistics"] = mx.nd.array(statistics[key], dtype="float32")
            params.update({_join(key, name): value for name, value in values.items()})
        for key, trainer in self._trainers.items():
            optimizers[key], found = trainer.collect_state(self._names_of(trainer))
            arrays.update({f"{key}:{name}": value for name, value in found.items()})
        manifest = {
            "job": environment.job_id(),
            "trainers": optimizers,
            "loader": self._loader if step else None,
            "worker_steps": worker_steps,
            "devices": devices.tolist(),
            "num_workers": workers.count,
            "facts": facts,
        }
        self._writer.start(epoch, min(worker_steps), None, params, arrays, manifest)

    def should_stop(self) -> bool:
        """Tell whether a worker was asked to stop. All workers make this call after every step.

        :meth:`steps` makes it for you. It does not wait for other workers.

        Returns
        -------
        bool
            The same on all workers; with ``dist_async`` they may learn it some steps apart.
        """
        self.restore()
        return bool(self._session.stopper.should_stop())

    @property
    def _first_trainer(self):
        return next(iter(self._trainers.values()))

    def _open(self):
        """Keep other jobs from saving there, and let requests to stop wait for a step."""
        if self._session is None:
            self._session = Session(self._prefix)
            self._session.__enter__()
        if self._workers.rank == 0:
            self._session.hold_prefix()
        self._session.stopper.watch_training(self._workers)
        self._is_open = True
        for trainer in self._trainers.values():
            if trainer.unsaved and self._workers.rank == 0:
                warn(trainer.unsaved)

    def _close(self):
        if self._session is not None:
            self._session.__exit__(None, None, None)
        self._session, self._is_open, self._writer = None, False, None

    def _finish(self):
        """Wait until all is written and all workers are here; return whether it was written."""
        failed = False
        if self._writer is not None:
            self._writer.wait()
            failed = self._writer.failed
        failed = bool(self._workers.all_reduce([failed])[0])
        self._session.stopper.finish()
        self._workers.barrier()
        if failed:
            raise OSError(f"{self._prefix}: the last checkpoint could not be written")

    def _end(self):
        """End this worker, as all others do, once all is written."""
        newest = self._writer
        self._finish()
        if newest is not None:
            report(f"Stopped and saved {newest.newest}: the same command goes on from it")
        sys.exit(SAVED)

    def _workers_are_within(self, length):
        """Tell whether some worker has steps left, in which case all stop within the epoch."""
        return self._workers.all_gather([self._step]).min() < length

    def _seed(self, seed, step):
        mix = np.random.RandomState([seed, self._epoch, step, self._workers.rank])
        for ctx in self._first_trainer.devices:
            mx.random.seed(int(mix.randint(2**31)), ctx=ctx)
        np.random.seed(int(mix.randint(2**31)))
        random.seed(int(mix.randint(2**31)))

    def _take(self, entry):
        """Read a checkpoint and see that it fits; nothing is changed yet."""
        params, state = files.read(entry.name, entry.manifest)
        if set(entry.manifest.get("trainers", ())) != set(self._trainers):
            raise Broken(f"{entry.name}: not of these trainers")
        try:
            found = files.parse_params(params)
            own = self._params()
            for names, what in ((own.keys() - found, "missing"), (found.keys() - own, "left over")):
                if names:
                    raise ValueError(f"{what}: {min(names)}")
            for name, array in found.items():
                if not _fits(own[name].shape, array.shape):
                    raise ValueError(f"{name} has the shape {array.shape}, not {own[name].shape}")
        except (mx.MXNetError, ValueError) as error:
            reason = str(error).strip().splitlines()[-1][:200]
            raise Broken(
                f"{entry.name}.params: not the parameters of this network: {reason}"
            ) from None
        return (entry.name, entry.manifest), params, state

    def _put_back(self, name, manifest, params, arrays):
        for each, param in self._params().items():
            param._load_init(params[each], None, cast_dtype=True)
        for key, trainer in self._trainers.items():
            own = {n.partition(":")[2]: a for n, a in arrays.items() if n.startswith(f"{key}:")}
            trainer.restore_state(manifest["trainers"][key], own, self._names_of(trainer))
        here = self._workers.all_gather([len(self._first_trainer.devices)]).ravel().astype(int)
        for key, net in self._nets.items():
            rows = arrays.get(f"{key}:statistics")
            if rows is not None and here.tolist() == manifest["devices"]:  # else the mean stays
                restore_statistics(net, rows, self._workers.rank)
        steps = manifest["worker_steps"]
        fits = len(steps) == self._workers.count
        self._epoch = manifest["epoch"]
        self._step = steps[self._workers.rank] if fits else manifest["step"]
        self._saved_loader, self.facts = manifest["loader"], manifest["facts"]
        if self._workers.rank == 0:
            within = f" and {self._step} steps" if self._step else ""
            report(f"Resumed from {name}: {self._epoch} epochs{within} done")

    def _params(self):
        """Return all parameters by the names that they have in the file."""
        return {
            _join(key, name): param
            for key, net in self._nets.items()
            for name, param in net._collect_params_with_prefix().items()
        }

    def _names_of(self, trainer: Trainer) -> List[str]:
        """Return the names of a trainer's parameters in the file, in the trainer's order.

        Gluon's own count the blocks that the process made before.
        """
        names = {id(param): name for name, param in self._params().items()}
        return [names.get(id(param), param.name) for param in trainer._params]


def _named(value, kind, what):
    """Return a dict: of one thing, under the name ""."""
    found = dict(value) if isinstance(value, Mapping) else {"": value}
    for key, each in found.items():
        if not isinstance(key, str) or ":" in key or not isinstance(each, kind):
            raise ValueError(f"{what} must be a {kind.__name__} or a dict of these, not {value!r}")
    return found


def _join(key, name):
    return f"{key}.{name}" if key else name


def _fits(shape, found):
    """Tell whether an array goes into a parameter, some of whose numbers may be unknown: 0."""
    return shape is None or (
        len(shape) == len(found) and all(a in (0, -1, b) for a, b in zip(shape, found))
    )


def _names_of(net):
    """Return the name in a file of each parameter, by the name that Gluon gives it."""
    return {param.name: name for name, param in net._collect_params_with_prefix().items()}
