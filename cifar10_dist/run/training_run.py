"""What surrounds the steps of a training: reports, checkpoints, stops on request."""

import sys
from collections import deque

from gluon_dist.common.finite import check_parameters, warn_of_scores
from gluon_dist.common.messages import counted, report, warn
from gluon_dist.setup import environment
from gluon_dist.workers.statistics import running_statistics

import numpy as np

from command_line.options import explain_defaults
from run.metrics import gradient_norm, run_name, train_results
from run.optimizer import OptimizerOptions, explain_optimizer
from run.profiling import profiled
from run.progress import Progress
from run.saver import Saver
from run.scores import Counts, is_test_early
from run.seeds import draws_numbers, seed_step
from run.slow_worker import SlowWorker
from run.summary import Summary

LOW_TEST = (
    "the first test is far below the training: BatchNorm's running averages usually need more "
    "steps than these {}"
)
STEPS_AHEAD = 2  # that Python may queue before MXNet has computed them
# What a worker reports of an epoch, gathered by all workers.
ROW = np.dtype(
    [
        ("samples_per_s", float),
        ("computing_s", float),
        ("waiting_s", float),
        ("steps", float, 3),  # of SlowWorker.add
        ("counts", float, len(Counts._fields)),
    ]
)


class TrainingRun:
    """One training from its first step to its exit status. All workers make the same calls.

    Parameters
    ----------
    args : argparse.Namespace
    start : run.resume.Start
        Where the training begins.
    net : mxnet.gluon.HybridBlock
    trainer : gluon_dist.Trainer
    workers : Workers
    session : gluon_dist.checkpoint.session.Session
        Takes requests to stop.

    Attributes
    ----------
    is_over : bool
        After an epoch: it was the last one, ``--target-accuracy`` is reached, or the workers were
        asked to stop.
    """

    def __init__(self, args, start, net, trainer, workers, session):
        self._args, self._start, self._net = args, start, net
        self._trainer, self._workers, self._stopper = trainer, workers, session.stopper
        self._saver = Saver(
            args.model_prefix,
            period=args.save_period,
            keep=args.keep,
            start=start,
            net=net,
            trainer=trainer,
            workers=workers,
            session=session,
        )
        self._epoch, self._steps_done = start.epoch, start.step  # where the loop is
        self.is_over, self._queued = False, deque()
        self._seconds, self._counts, self._steps = 0.0, Counts(), ()  # see save_if_stopped
        self._summary = Summary(workers.count)
        self._slow_worker = SlowWorker()
        self._advice = "try a lower --lr"  # against infinite weights
        if args.gc_type == "fp16":
            self._advice += ", or leave out --gc-type fp16"
        self._is_seeded = draws_numbers(net, args.optimizer)
        name = run_name(args, workers.count, len(trainer.devices))
        self._progress = Progress(
            workers.rank,
            start.steps_per_epoch,
            disp_batches=args.disp_batches,
            log_dir=args.log_dir and args.log_dir.replace("{run}", name),
            start=start,
            is_measured=bool(args.benchmark),
            top_k=args.top_k,
            num_epochs=args.num_epochs,
        )
        if self._is_seeded and start.is_seeded_otherwise and workers.rank == 0:
            warn(
                f"{start.name}: saved within an epoch by an older version, which drew random "
                "numbers (for dropout and the like) in another way: the rest of the epoch draws "
                "others than a training that was not stopped"
            )

    def batches(self, loader, epoch):
        """Yield the batches of an epoch that are left, until the last or a request to stop.

        Parameters
        ----------
        loader : loader.TrainLoader
        epoch : int
        """
        is_first = epoch == self._start.epoch
        self._epoch, self._steps_done = epoch, self._start.step if is_first else 0
        self._progress.epoch_started(epoch)
        with profiled(self._args.profile if is_first else None, self._workers.rank):
            for batch in self._progress.read(loader.epoch(epoch, self._steps_done)):
                if self._is_seeded:
                    seed_step(self._args.seed, epoch, self._steps_done, self._workers.rank)
                yield batch
                if self._stopper.should_stop():
                    return

    def step_done(self, outputs, labels):
        """Count a step, check for NaN now and then, and wait while too many steps are queued.

        Parameters
        ----------
        outputs, labels : list of NDArray, shapes (n_i, classes) and (n_i,)
            Of each device that had examples.
        """
        self._steps_done += 1
        self._progress.batch_done(self._epoch, self._steps_done, outputs, labels)
        if self._steps_done % self._args.disp_batches == 0:
            when = f"Epoch[{self._epoch}] Batch [{self._steps_done}]"
            check_parameters(self._net, when, self._advice)
            warn_of_scores(outputs, when)
        self._queued.append(outputs)  # a request to stop waits for all of these; they take memory
        if len(self._queued) > STEPS_AHEAD:
            for output in self._queued.popleft():
                output.wait_to_read()

    def save_if_stopped(self, epoch):
        """Return whether the workers were asked to stop within the epoch; if so, save.

        Raises
        ------
        Diverged
            If a parameter is not finite: it is neither tested nor saved.
        """
        self._queued.clear()
        check_parameters(self._net, f"Epoch {epoch}", self._advice)
        # All is computed: the check has waited for it.
        self._seconds, self._counts = self._progress.trained()
        self._steps = self._trainer.exchange.measure_steps()
        return self._saver.stopped_within(epoch, self._steps_done)

    def is_test_due(self, epoch):
        """Return whether to evaluate now: every ``--test-period`` epochs, and after the last."""
        return self._is_last(epoch) or (epoch + 1) % self._args.test_period == 0

    def epoch_done(self, epoch, result):
        """Report an epoch, save if it is time, and find out whether the training is over.

        Parameters
        ----------
        epoch : int
        result : dict
            Of :func:`training.evaluate`, or empty: not tested.
        """
        target, accuracy = self._args.target_accuracy, result.get("accuracy")
        measured, slow_worker = self._measurements()
        self._progress.epoch_done(epoch, result, self._trainer.learning_rate, measured)
        if self._workers.rank == 0:
            self._explain_low_test(epoch, accuracy)
            if slow_worker:
                warn(slow_worker)
        # All workers have the same accuracy, so all stop here or none does.
        has_reached = bool(result and target and accuracy >= target)
        if has_reached:
            self._progress.say(f"Epoch {epoch}: reached --target-accuracy {target:g}")
        self._summary.epoch_done(epoch, accuracy)
        is_last = has_reached or self._is_last(epoch)
        self.is_over = self._saver.epoch_done(epoch + 1, is_last, accuracy=accuracy)

    def finish(self):
        """Wait for the files and for the other workers; return the exit status."""
        if self._args.benchmark and self._workers.rank == 0:
            self._progress.report_size(self._net)
        self._progress.close()
        status = self._saver.finish()  # no worker exits while another one needs the servers
        if status == 0 and self._workers.rank == 0:
            self._progress.say(self._summary.text(self._saver.newest))
        return status

    def _explain_low_test(self, epoch, accuracy):
        """Say why the test of the first epoch is low where that looks as if it were broken."""
        if epoch or accuracy is None or self._args.benchmark:  # that trains on one batch
            return
        is_early = is_test_early(self._counts, accuracy, self._steps_done)
        if is_early and running_statistics(self._net):
            self._progress.say(LOW_TEST.format(self._steps_done))

    def _is_last(self, epoch):
        return epoch + 1 == self._args.num_epochs

    def _measurements(self):
        """Return what was measured in an epoch besides its test, the same on all workers.

        Returns
        -------
        found : dict of str to float
        slow_worker : str or None
            A line about a worker that all workers wait for.
        """
        found = self._trainer.measure_staleness()
        computing, waiting = np.reshape(self._steps, (-1, 2)).T
        waited = waiting.sum()
        speed = self._counts.examples / max(self._seconds, 1e-9)
        described = self._slow_worker.add(computing[1:])
        row = np.array((speed, self._seconds - waited, waited, described, self._counts), ROW)
        rows = self._workers.all_gather(row[None].view(float)).view(ROW)[:, 0]
        counts = Counts(*rows["counts"].sum(axis=0))  # of all workers
        self._summary.trained(counts.examples, self._seconds)
        for rank, row in enumerate(rows):
            found[f"samples_per_s_worker_{rank}"] = row["samples_per_s"]
            if self._steps:
                found[f"seconds_computing_worker_{rank}"] = row["computing_s"]
                found[f"seconds_waiting_worker_{rank}"] = row["waiting_s"]
        if self._args.log_dir:
            found.update(train_results(counts, self._args.top_k))
            found["gradient_norm"] = gradient_norm(self._trainer)
        return found, self._slow_worker.judge(rows["steps"])


def introduce(args, net, images, loader, trainer, workers):
    """Say what is trained, on what, by how many; worker 0 does so for all."""
    if workers.rank > 0:
        return
    ctx = trainer.devices
    report(
        f"{args.network} on {images.name}: {counted(workers.count, 'worker')}, "
        f"{counted(len(ctx), 'device')} each ({', '.join(map(str, ctx))}), "
        f"kvstore {workers.store_type}, batch size {args.batch_size} a worker, "
        f"{loader.global_batch_size} in all, {counted(len(loader), 'step')} an epoch"
    )
    chosen = explain_optimizer(OptimizerOptions.of(args), workers)
    is_watched = environment.shows_progress() or sys.stdout.isatty()
    for line in (*explain_defaults(args, is_short=is_watched), *trainer.explain(), *chosen):
        report(line)
