"""When the training is saved, and what: arrays are copied at once, a thread writes the files."""

from gluon_dist.checkpoint.contents import copy_of
from gluon_dist.checkpoint.manifest import Manifest
from gluon_dist.checkpoint.parameters import with_kinds
from gluon_dist.checkpoint.statistics import BY_LAYER, gather_statistics, mean_statistics
from gluon_dist.checkpoint.writer import Writer
from gluon_dist.common.messages import report, warn
from gluon_dist.contract import SAVED

import mxnet as mx

from networks.by_name import network_json
from run.versions import all_versions


class Saver:
    """Writes checkpoints of a training; only worker 0 writes.

    Parameters
    ----------
    prefix : str or None
        Nothing is written without.
    period : int
        Epochs between two checkpoints.
    keep : int or None
        Checkpoints of this run that stay; None: all.
    start : run.resume.Start
        Has the name of the run, and the facts that each manifest states.
    net : mxnet.gluon.HybridBlock
    trainer : gluon_dist.Trainer
    workers : Workers
    session : gluon_dist.checkpoint.session.Session
    """

    def __init__(self, prefix, period, keep, start, net, trainer, workers, session):
        self._prefix, self._period = prefix, period
        self._net, self._trainer, self._workers = net, trainer, workers
        self._stopper, self._is_stopped = session.stopper, False
        self._writer = Writer(prefix, keep, start.run, session, start.name)
        if not self._prefix:
            return
        self._stopper.watch_training(workers)
        self._symbol = network_json(net)
        self._devices = workers.all_gather_int(len(trainer.devices))
        self._facts = dict(start.facts, versions=all_versions())
        self._job = self._facts.pop("job", "")
        if trainer.unsaved and workers.rank == 0:
            warn(trainer.unsaved)

    @property
    def newest(self):
        """The name of the newest checkpoint, on worker 0; None before the first."""
        return self._writer.newest if self._prefix else None

    def stopped_within(self, epoch, steps):
        """Save if the workers were asked to stop before the end of an epoch; all make this call.

        Parameters
        ----------
        epoch, steps : int
            Finished epochs, and this worker's finished steps of the next.

        Returns
        -------
        bool
            Whether it was saved, the same on all. In ``dist_async`` the workers may stop after
            different steps.
        """
        if not self._prefix:
            return False
        worker_steps = self._workers.all_gather_int(steps)
        if min(worker_steps) == self._facts["steps_per_epoch"]:
            return False
        self._is_stopped = True
        self._stopper.lift_limit()
        self._save(epoch, worker_steps)
        return True

    def epoch_done(self, epochs_done, is_last, **facts):
        """Save after ``epochs_done`` epochs if it is time; all make this call.

        Returns
        -------
        bool
            Whether to leave, because it was the last one or the workers were asked to stop.
        """
        if not self._prefix:
            return is_last
        self._is_stopped = not is_last and self._stopper.is_requested_anywhere(self._workers)
        if is_last or self._is_stopped:
            self._stopper.lift_limit()
        if epochs_done % self._period == 0 or is_last or self._is_stopped:
            self._save(epochs_done, **facts)
        return is_last or self._is_stopped

    def finish(self):
        """Wait until all is written and all workers have come here; return the exit status."""
        self._writer.wait()
        if self._is_stopped and self._workers.rank == 0 and not self._writer.failed:
            report(f"Stopped and saved {self._writer.newest}: --resume auto goes on from it")
        failed = bool(self._workers.all_reduce([self._writer.failed])[0])
        self._stopper.finish()
        self._workers.barrier()
        return 1 if failed else SAVED if self._is_stopped else 0

    def _save(self, epoch, worker_steps=(), **facts):
        """Copy what is saved and let a thread write it: the training continues at once."""
        step = min(worker_steps, default=0)
        statistics = gather_statistics(self._net, self._workers) if step else None
        if self._workers.rank > 0:
            return
        self._writer.wait()
        params = {param.name: copy_of(param) for param in self._net.collect_params().values()}
        if step:
            params.update(mean_statistics(self._net, statistics))
        optimizer, arrays = self._trainer.collect_state()
        if step:
            arrays[BY_LAYER] = mx.nd.array(statistics, dtype="float32")
        manifest = Manifest(
            epoch,
            step,
            job=self._job,
            worker_steps=list(worker_steps),
            devices=self._devices,
            program=dict(self._facts, optimizer=optimizer, **facts),
        )
        params = with_kinds(params, self._symbol)
        self._writer.start(manifest, self._symbol, params, arrays)
