"""When and what to save: copies at once, files by a thread while the training goes on."""

import datetime
import threading

import mxnet as mx

from ground.failure import STOPPED
from ground.messages import report, warn
from ground.versions import all_versions
from networks.by_name import network_json
from saving import checkpoint
from saving.statistics import gather_statistics, mean_statistics


class Saver:
    """Writes checkpoints of a training; only worker 0 writes.

    Parameters
    ----------
    args : argparse.Namespace
        With ``model_prefix`` (nothing is written without), ``save_period`` and ``keep``.
    facts : dict
        What each manifest says besides: options, data, numbers of steps.
    start : saving.resume.Start
        A resumed run keeps its name.
    net : mxnet.gluon.HybridBlock
    trainer : trainers.base.JobTrainer
    workers : workers.Workers
    session : saving.session.Session
    """

    def __init__(self, args, facts, start, net, trainer, workers, session):
        self._prefix, self._period, self._keep = args.model_prefix, args.save_period, args.keep
        self._net, self._trainer, self._workers = net, trainer, workers
        self._session, self._stopper, self._is_stopped = session, session.stopper, False
        self._newest, self._failed = start.name, False
        if not self._prefix:
            return
        self._stopper.watch_training(workers)
        devices = workers.gather([len(trainer.devices)]).ravel().astype(int).tolist()
        self._facts = dict(facts, run=start.run, devices=devices, versions=all_versions())
        self._symbol = network_json(net)
        if trainer.unsaved and workers.rank == 0:
            warn(trainer.unsaved)

    def stopped_within(self, epoch, steps):
        """Save if the workers were asked to stop before the end of an epoch; all make this call.

        Parameters
        ----------
        epoch, steps : int
            Finished epochs, and this worker's finished steps of the next.

        Returns
        -------
        bool
            The same on all; in ``dist_async`` not all of them stop after the same step.
        """
        if not self._prefix:
            return False
        worker_steps = self._workers.gather([steps]).ravel().astype(int).tolist()
        if min(worker_steps) == self._facts["steps_per_epoch"]:
            return False
        self._is_stopped = True
        self._stopper.lift_limit()
        self._save(epoch, min(worker_steps), worker_steps=worker_steps)
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
        self._wait()
        if self._is_stopped and self._workers.rank == 0 and not self._failed:
            report(f"Stopped and saved {self._newest}: --resume auto goes on from it")
        failed = bool(self._workers.sum([self._failed])[0])
        self._stopper.finish()
        self._workers.barrier()
        return 1 if failed else STOPPED if self._is_stopped else 0

    def _save(self, epoch, step=0, **facts):
        """Take copies, so that the training may go on at once, and let a thread write them."""
        statistics = gather_statistics(self._net, self._workers) if step else None
        if self._workers.rank > 0:
            return
        self._wait()  # for the checkpoint before
        params = {
            p.name: p.list_data()[0].copyto(mx.cpu()) for p in self._net.collect_params().values()
        }
        if step:
            params.update(mean_statistics(self._net, statistics))
        arguments = set(mx.sym.load_json(self._symbol).list_arguments())
        params = {("arg:" if n in arguments else "aux:") + n: v for n, v in params.items()}
        optimizer, arrays = self._trainer.collect_state()
        if step:
            arrays["statistics"] = mx.nd.array(statistics, dtype="float32")
        now = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
        facts = dict(self._facts, saved=now, optimizer=optimizer, **facts)
        work = (epoch, step, self._symbol, params, arrays, facts)
        self._session.writing = threading.Thread(target=self._write, args=work)
        self._session.writing.start()

    def _wait(self):
        if self._session.writing:
            self._session.writing.join()

    def _write(self, epoch, step, *contents):
        self._failed = True  # also if an exception ends this thread, which Python only prints
        try:
            self._newest = checkpoint.write(self._prefix, epoch, step, *contents)
            self._failed = False
        except (OSError, mx.MXNetError, MemoryError, ValueError) as error:
            name = f"{self._prefix}-{checkpoint.tag(epoch, step)}"
            newest = f"the newest checkpoint is {self._newest}" if self._newest else "there is none"
            warn(f"{name} could not be saved: {_reason(error)}; {newest}")
            return
        try:
            self._remove_old(epoch, step)
        except OSError as error:
            warn(f"--keep {self._keep}: {error.filename}: {error.strerror}")

    def _remove_old(self, epoch, step):
        """Remove this run's checkpoints beyond ``--keep``."""
        if self._keep is None:
            return
        run = self._facts["run"]
        own = [e for e in checkpoint.find(self._prefix) if e.manifest and e.manifest["run"] == run]
        before = [entry for entry in own if (entry.epoch, entry.step) <= (epoch, step)]
        for entry in before[self._keep :]:
            checkpoint.remove(entry)


def _reason(error):
    """Say in one line why a file could not be written."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    text = str(error).strip()
    if "FileStream.Write incomplete" in text:
        return "No space left on device"
    return text.splitlines()[-1][:200] if text else type(error).__name__
