"""The loop of a training that can be stopped, killed and started again."""

import json
import os
import random
import sys
import time
import weakref
from typing import Any, Dict, Iterator, Mapping, Optional, Tuple, Union

from gluon_dist.checkpoint import files
from gluon_dist.checkpoint.candidates import first_usable, look_elsewhere
from gluon_dist.checkpoint.contents import Contents
from gluon_dist.checkpoint.manifest import Broken, Manifest
from gluon_dist.checkpoint.session import Session
from gluon_dist.checkpoint.writer import Writer, new_run
from gluon_dist.common import protocols
from gluon_dist.common.errors import NotSaved, UsageError, last_line
from gluon_dist.common.messages import counted, report, warn
from gluon_dist.contract import MANIFEST_ENDING, SAVED
from gluon_dist.exchange.trainer import Trainer
from gluon_dist.setup import environment
from gluon_dist.setup.exceptions import tell_mistakes_in_a_line
from gluon_dist.workers import group
from gluon_dist.workers.batch import Batch
from gluon_dist.workers.loader import DataLoader
from gluon_dist.workers.operations import compare
from gluon_dist.workers.workers import OTHERS_WAIT_S

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
        Initialized. Weights whose shapes are unknown yet are drawn in the first step: by the seed
        of the loader, not by yours. A dict is for several networks, as of a GAN; its names stay the
        same from run to run.
    trainer : Trainer or dict of str to Trainer
        Their parameters are those of ``net``.
    keep : int, optional
        How many checkpoints of this run to keep. Default: all.

    Attributes
    ----------
    facts : dict
        Yours: plain numbers, texts, lists and dicts, such as the best accuracy. Each checkpoint has
        those of worker 0. After :meth:`restore`, or in the first epoch, they are here again.

    Raises
    ------
    gluon_dist.UsageError
        If no files can be written to the folder.
    ValueError
        If an argument is of another kind.

    Notes
    -----
    Your own variables beside ``facts`` are not saved: a metric covers, in an epoch that was stopped
    and continued, the steps since then. Attributes of a scheduler or an optimizer are saved if they
    are numbers or lists of numbers; what else they keep is lost, without a word. An exception in
    the loop ends it without saving. A process has one Checkpoint at work: a new one closes the one
    before.

    Examples
    --------
    >>> import os, sys, tempfile
    >>> import gluon_dist as gd
    >>> import mxnet as mx
    >>> folder = tempfile.TemporaryDirectory()
    >>> net = mx.gluon.nn.Dense(1, in_units=1)
    >>> net.initialize()
    >>> trainer = gd.Trainer(net.collect_params(), "adam")
    >>> loss = mx.gluon.loss.L2Loss()
    >>> data = mx.gluon.data.ArrayDataset(mx.nd.ones((4, 1)), mx.nd.ones(4))
    >>> loader = gd.DataLoader(data, batch_size=2)
    >>> job = gd.Checkpoint(folder.name + "/net", net, trainer)
    >>> for epoch in job.epochs(2):
    ...     for batch in job.steps(loader):
    ...         with mx.autograd.record():  # a worker without an example has no part, and no loss
    ...             losses = [loss(net(x), y) for x, y in batch.split(trainer.devices)]
    ...         gd.backward(losses)
    ...         trainer.step(batch.global_size)
    >>> sorted(os.listdir(folder.name))[:3]
    ['net-0001.json', 'net-0001.params', 'net-0001.state']

    Run again, it has nothing left to do:

    >>> job = gd.Checkpoint(folder.name + "/net", net, trainer)
    >>> list(job.epochs(2))  # doctest: +ELLIPSIS
    Resumed from ...net-0002: 2 epochs done
    ...nothing is left to train: 2 of 2 epochs are done
    []

    Loops of your own, here for a third epoch. You seed the random numbers, if you want the same
    after a restart, and ask :meth:`should_stop` after every step:

    >>> job = gd.Checkpoint(folder.name + "/net", net, trainer)
    >>> epoch, step = job.restore()  # doctest: +ELLIPSIS
    Resumed from ...net-0002: 2 epochs done
    >>> while epoch < 3:
    ...     for batch in loader.epoch(epoch, step):  # the steps that are left
    ...         ...  # as above: record, backward, step
    ...         step += 1
    ...         if job.should_stop():
    ...             job.save(epoch, step)
    ...             job.close()  # waits until all is written
    ...             sys.exit(75)
    ...     epoch, step = epoch + 1, 0
    ...     job.save(epoch)
    Ellipsis
    Ellipsis
    >>> job.close()
    >>> folder.cleanup()
    """

    def __init__(
        self,
        prefix: Union[str, "os.PathLike[str]"],
        net: Nets,
        trainer: Trainers,
        keep: Optional[int] = None,
    ) -> None:
        self._prefix, self._keep = _checked_prefix(prefix), keep
        if keep is not None and not (isinstance(keep, int) and keep > 0):
            raise ValueError(f"keep must be a whole number from 1 on, or None, not {keep!r}")
        nets = _named(net, mx.gluon.Block, "net")
        trainers = _named(trainer, Trainer, "trainer")
        self._workers = group.workers()
        self._contents = Contents(nets, trainers, self._workers)
        self._epoch, self._step = 0, 0  # finished epochs, and steps of the next
        self._in_epoch = False  # between the beginning of an epoch and that of its steps
        self._saved_loader: Optional[Mapping[str, object]] = None  # of the checkpoint's epoch
        self._loader: Optional[Mapping[str, object]] = None  # of this epoch
        self.facts: Dict[str, object] = {}
        self._run: Optional[str] = None  # known once a checkpoint was looked for
        self._session: Any = None  # a Session while it takes requests
        self._writer: Optional[Writer] = None  # of worker 0, while it is open
        self._is_open = False  # requests to stop wait for a step, and the prefix is held
        tell_mistakes_in_a_line()
        self._take_requests()

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

        Notes
        -----
        An epoch is saved after the body of the loop: evaluate within it. Random numbers are seeded
        at the beginning of each epoch, as by :meth:`steps`. A loop that you leave by ``break`` does
        not save that epoch; :meth:`save` may.
        """
        if self._in_loop():  # which an exception has ended, in a notebook, say
            self._release()
        epoch, _ = self.restore()
        session, stopper = self._session, self._session.stopper
        if epoch >= num_epochs and self._workers.rank == 0:
            report(
                f"{self._prefix}: nothing is left to train: {epoch} of {num_epochs} epochs are done"
            )
        try:
            for number in range(epoch, num_epochs):
                self._epoch, self._in_epoch = number, True
                self._seed(number)
                yield number
                self._require_open("epochs", session)
                self._in_epoch, self._step = False, 0
                compare(self._workers, f"the end of epoch {number} in Checkpoint.epochs")
                is_last = number + 1 == num_epochs
                is_asked = stopper.is_requested_anywhere(self._workers) and not is_last
                if is_last or is_asked:
                    stopper.lift_limit()
                self.save(number + 1)
                self._epoch = number + 1
                if is_asked:
                    self._stop()
            self.close()
        finally:
            if self._session is session:
                self._release()

    def steps(self, loader: DataLoader) -> "Iterator[Batch]":
        """Yield the batches of this epoch that are left; save and end if a worker is asked to.

        Once in each of :meth:`epochs`. Before each step it seeds the random numbers of MXNet, NumPy
        and Python, by the seed of the loader, the epoch, the step and the rank. This takes MXNet
        about 4 ms.

        Parameters
        ----------
        loader : DataLoader

        Yields
        ------
        gluon_dist.workers.batch.Batch

        Raises
        ------
        SystemExit
            As :meth:`epochs`.
        gluon_dist.UsageError
            If the training was stopped within this epoch, and had another loader then.
        """
        if not isinstance(loader, DataLoader):
            kind = type(loader).__name__
            raise TypeError(f"steps: loader must be a gluon_dist.DataLoader, not a {kind}")
        self._require_open("steps")
        if not self._in_epoch:
            raise RuntimeError("steps: once in each epoch, inside a loop over epochs(...)")
        self._in_epoch, self._loader = False, loader.facts()
        session, first = self._session, self._step
        if first:
            self._check_loader()
        batches = loader.epoch(self._epoch, first)
        is_asked = False
        for step in range(first, len(loader)):
            self._seed(loader.seed, self._epoch, step)
            yield next(batches)
            self._require_open("steps", session)
            self._step = step + 1
            is_asked = session.stopper.should_stop()
            if is_asked:
                break
        # In dist_async a worker may be at the end when it hears that another has stopped.
        if (is_asked or self._workers.is_async) and self._is_any_within(len(loader)):
            session.stopper.lift_limit()
            self.save(self._epoch, self._step)
            self._stop()

    def restore(self) -> Tuple[int, int]:
        """Load the newest complete checkpoint, if there is one. All workers make this call.

        :meth:`epochs` and :meth:`save` make it for you. Only the first call loads.

        Returns
        -------
        epoch, step : int
            Where to continue: the number of finished epochs, and of finished steps in the next one.

        Raises
        ------
        gluon_dist.UsageError
            If another job saves there, if another host has newer files, or if no checkpoint is
            usable.
        """
        if self._is_open:
            return self._epoch, self._step
        try:
            self._open()
            self._load()
        except BaseException:
            self._release()
            raise
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
            Numbers, texts, and lists and dicts of these. They are added to the attribute ``facts``.

        Raises
        ------
        RuntimeError
            Before :meth:`restore`, or :meth:`epochs`: what was saved there would be lost.
        TypeError, ValueError
            If JSON cannot hold ``facts``.
        """
        if self._run is None:
            raise RuntimeError("save: call restore(), or epochs(), before the training")
        _check_facts({**self.facts, **facts})
        self.facts.update(facts)
        is_for_this = not self._is_open  # after the loop
        if is_for_this:
            self._open()
        compare(self._workers, "Checkpoint.save")
        steps = self._workers.all_gather_int(step)
        devices = self._contents.count_devices()
        if self._writer is not None:
            self._writer.wait()
        params, arrays, trainers = self._contents.collect(max(steps) > 0, self._writer is not None)
        program = {
            "trainers": trainers,
            "loader": self._loader if step else None,
            "num_workers": self._workers.count,
            "facts": json.loads(json.dumps(self.facts)),  # a copy
        }
        if self._writer is not None:
            job = environment.job_id()
            manifest = Manifest(
                epoch, min(steps), job=job, worker_steps=steps, devices=devices, program=program
            )
            self._writer.start(manifest, None, params, arrays)
        if is_for_this:
            self.close()

    def should_stop(self) -> bool:
        """Return whether a worker was asked to stop. All workers make this call after every step.

        :meth:`steps` makes it for you. It does not wait for other workers.

        Returns
        -------
        bool
            The same on all workers; with ``dist_async`` they may learn it some steps apart.
        """
        self._require_open("should_stop")
        is_asked = bool(self._session.stopper.should_stop())
        if is_asked:
            self._session.stopper.lift_limit()
        return is_asked

    def close(self) -> None:
        """Wait until all is written and all workers are here; TERM is again what it was.

        Raises
        ------
        OSError
            If the last checkpoint could not be written.
        """
        if not self._is_open:
            self._release()
            return
        self._session.stopper.lift_limit()
        failed = False
        if self._writer is not None:
            self._writer.wait()
            failed = self._writer.failed
        failed = bool(self._workers.all_reduce([failed])[0])
        self._session.stopper.finish()
        self._workers.barrier()
        self._release()
        if failed:
            raise NotSaved(f"{self._prefix}: the last checkpoint could not be written")

    def _stop(self):
        """End this worker, as all others do, once all is written."""
        writer = self._writer
        self.close()
        if writer is not None:
            report(f"Stopped and saved {writer.newest}: the same command goes on from it")
        sys.exit(SAVED)

    def _take_requests(self):
        """Take TERM and USR1 from now on: before the training there is nothing to save."""
        global _at_work
        before, _at_work = _at_work and _at_work(), weakref.ref(self)
        if before is not None and before is not self:
            before._release()
        self._session = Session(self._prefix, "prefix")
        self._session.__enter__()
        # Whoever forgets it, and whatever ends the process.
        self._closing = weakref.finalize(self, self._session.__exit__, None, None, None)

    def _open(self):
        """Keep other jobs from saving there, and let requests to stop wait for a step."""
        if self._session is None:
            self._take_requests()
        self._is_open = True
        if self._workers.rank == 0:
            self._session.hold_prefix()
            self._writer = Writer(self._prefix, self._keep, self._run, self._session)
        self._session.stopper.watch_training(self._workers)

    def _release(self):
        """Give back signals and the prefix, once all is written; each worker for itself."""
        if self._writer is not None:
            self._writer.wait()
        if self._session is not None:
            self._closing()
        self._session, self._writer, self._is_open, self._in_epoch = None, None, False, False

    def _load(self):
        """Put back the newest checkpoint that is whole, or begin a run."""
        workers, contents = self._workers, self._contents
        for text in contents.unsaved if workers.rank == 0 else ():
            warn(text)
        entries = files.find(self._prefix)
        look_elsewhere(entries, f"{self._prefix}-*.json", True, workers, "another prefix")
        name, text, params, state = "", "", b"", b""
        if workers.rank == 0 and entries:
            self._check_manifests(entries)
            (name, manifest), params, state = first_usable(entries, self._take)
            text = manifest.text()
        name = workers.broadcast(name.encode()).decode()
        self._run, self._epoch, self._step, self._loader = new_run(), 0, 0, None
        if name:
            manifest = Manifest.parse(workers.broadcast(text.encode()).decode())
            params, state = workers.broadcast(params), workers.broadcast(state)
            contents.put_back(manifest, files.parse_params(params), files.parse_state(state))
            self._run, self._epoch = manifest.run, manifest.epoch
            self._step = manifest.steps_of(workers.rank, workers.count)
            self._saved_loader = manifest.program["loader"]
            self.facts = manifest.program["facts"]
        if workers.rank == 0:
            self._writer = Writer(self._prefix, self._keep, self._run, self._session, name or None)
            if name:
                within = f" and {counted(self._step, 'step')}" if self._step else ""
                report(f"Resumed from {name}: {counted(self._epoch, 'epoch')}{within} done")

    def _check_manifests(self, entries):
        """Refuse to begin anew where the only files are parameters that something else saved."""
        if not any(os.path.exists(f"{entry.name}{MANIFEST_ENDING}") for entry in entries):
            raise UsageError(
                f"{entries[0].name}.params has no manifest, so gluon_dist.Checkpoint has not saved "
                "it: move it away, or take another prefix (net.load_parameters may read it)"
            )

    def _take(self, entry):
        """Read a checkpoint and see that it fits; nothing is changed yet."""
        params, state = files.read(entry.name, entry.manifest)
        try:
            found = files.parse_params(params)
        except (mx.MXNetError, ValueError) as error:
            raise Broken(f"{entry.name}.params: {last_line(error)}") from None
        self._contents.check(entry.name, entry.manifest, found)
        return (entry.name, entry.manifest), params, state

    def _check_loader(self):
        """See that the steps that are done of this epoch are those that this loader begins with."""
        for name, here in self._loader.items():
            saved = (self._saved_loader or self._loader).get(name)
            if saved != here:
                if self._workers.rank:
                    time.sleep(OTHERS_WAIT_S)  # worker 0 says it
                raise UsageError(
                    f"{self._prefix}: stopped inside epoch {self._epoch}, with a loader whose "
                    f"{name.replace('_', ' ')} was {saved}, which is {here} here: go on with the "
                    "same, or remove that checkpoint"
                )

    def _is_any_within(self, length):
        """Return whether some worker has steps left, in which case all stop within the epoch."""
        return self._workers.all_gather([self._step]).min() < length

    def _in_loop(self):
        return self._is_open and (self._in_epoch or self._loader is not None)

    def _require_open(self, what, session=None):
        if not self._is_open or session not in (None, self._session):
            raise RuntimeError(f"{what}: call restore(), or epochs(), first: this is closed")

    def _seed(self, *numbers):
        mix = np.random.RandomState([*numbers, self._workers.rank])
        for ctx in self._contents.devices:
            mx.random.seed(int(mix.randint(2**31)), ctx=ctx)
        np.random.seed(int(mix.randint(2**31)))
        random.seed(int(mix.randint(2**31)))


_at_work: Optional["weakref.ref[Checkpoint]"] = None  # in this process


def _checked_prefix(prefix):
    prefix = os.fspath(prefix)
    if os.path.basename(prefix) in ("", ".", ".."):
        raise ValueError(f"prefix {prefix!r}: a folder; add how its files begin")
    return prefix


def _check_facts(facts):
    try:
        json.dumps(facts, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise type(error)(f"facts: {error}") from None


def _named(value, kind, what):
    """Return a dict: of one thing, under the name ""."""
    found = dict(value) if isinstance(value, Mapping) else {"": value}
    if not found:
        raise ValueError(f"{what}: an empty dict")
    for key, each in found.items():
        if not isinstance(key, str) or ":" in key:
            raise ValueError(f"{what}: {key!r} is no name: take a text without a colon")
        if not isinstance(each, kind):
            name = f"gluon_dist.{kind.__name__}" if kind is Trainer else kind.__name__
            other = f"{type(each).__module__}.{type(each).__name__}"  # all of a network takes lines
            raise ValueError(f"{what} must be a {name} or a dict of these, not a {other}")
    return found
