"""What the training loop tells of its steps: from here it is saved, stopped, resumed and reported.

The loop stays as short as it is because everything that cuts across it hangs on this one object.
"""

import contextlib
from collections import deque

from mxnet import autograd

from command_line.options import explain_defaults, options_of
from ground import environment
from ground.finite import check_parameters, warn_of_scores
from ground.versions import versions
from run.metrics import gradient_norm, run_name, train_results
from run.precision import set_dtype
from run.progress import Progress, profiled
from run.seeds import Seeds, draws_numbers
from saving.lock import check_prefix, hold
from saving.resume import find_start, tell
from saving.saver import Saver, files_finished
from saving.stopper import Stopper
from trainers.create import explain
from training import split_batch
from workers import average_statistics

STEPS_AHEAD = 2  # that Python may queue before MXNet has computed them


class Run:
    """One training, from its command line to its exit status.

    Use it in a ``with`` block, and call its methods in the order in which they stand here. All
    workers make the same calls.

    Parameters
    ----------
    args : argparse.Namespace
    """

    def __init__(self, args):
        self._args = args
        self._workers = self._images = self._loader = self._net = None  # see begin
        self._facts = self._start = None
        self._trainer = self._saver = self._seeds = self._progress = None  # see epochs
        self._result, self._is_over = {}, False
        self._epoch = self._steps_done = 0  # where the loop is
        self._queued = deque()
        self._stopper = Stopper(is_active=bool(args.model_prefix))
        self._files, self._prefix = files_finished(), contextlib.ExitStack()
        if args.model_prefix and environment.is_first_worker():  # only worker 0 writes
            check_prefix(args.model_prefix)

    def __enter__(self):
        self._files.__enter__()
        self._stopper.__enter__()
        return self

    def __exit__(self, *error):
        self._stopper.__exit__(*error)
        self._files.__exit__(*error)
        self._prefix.__exit__(*error)

    def begin(self, workers, images, loader, net):
        """See that all workers train alike, and load a checkpoint if there is one to go on from.

        From here on the network computes in ``--dtype``.

        Parameters
        ----------
        workers : workers.Workers
        images : sources.images.ImageSource
        loader : loader.TrainLoader
        net : mxnet.gluon.HybridBlock
            Gets the parameters.

        Returns
        -------
        int
            Steps of this training that are done.
        """
        self._workers, self._images, self._loader, self._net = workers, images, loader, net
        options = {**options_of(self._args), **versions()}
        workers.agree({"data": images.fingerprint, **options})
        self._facts = {
            "job": environment.job_id(),
            "options": options,
            "data": images.fingerprint,
            "seed": self._args.seed,
            "num_workers": workers.count,
            "global_batch_size": loader.global_batch_size,
            "steps_per_epoch": len(loader),
            "is_async": workers.is_async,
        }
        if self._args.model_prefix and workers.rank == 0:
            self._prefix.enter_context(hold(self._args.model_prefix))
        self._start = find_start(self._args, self._facts, net, workers)
        saved = self._start.manifest.get("options", {})
        set_dtype(self._args, net, workers, saved.get("--dtype"))
        options["--dtype"] = self._args.dtype  # auto is settled
        if workers.rank == 0:
            tell(self._start, self._facts)
        return self._start.epoch * len(loader) + self._start.step

    def epochs(self, trainer):
        """Yield the number of each epoch that is left, until the last or a request to stop.

        Parameters
        ----------
        trainer : trainers.worker_trainer.WorkerTrainer or trainers.asynchronous.AsyncTrainer
            Gets the state that its optimizer had.
        """
        args, workers, start = self._args, self._workers, self._start
        if start.is_end(args.num_epochs, args.target_accuracy):
            print(f"Epoch {start.epoch - 1}: nothing is left to train", flush=True)
            return
        self._trainer = trainer
        start.restore(self._net, trainer, workers)
        self._saver = Saver(args, start, self._facts, self._net, trainer, workers, self._stopper)
        if draws_numbers(self._net, args.optimizer):
            self._seeds = Seeds(args.seed, workers.rank, args.optimizer)
        log_dir = args.log_dir and args.log_dir.replace(
            "{run}", run_name(args, workers.count, len(trainer._contexts))
        )
        self._progress = Progress(
            workers.rank,
            len(self._loader),
            args.disp_batches,
            log_dir,
            bool(args.benchmark),
            args.top_k,
        )
        self._introduce()
        for epoch in range(start.epoch, args.num_epochs):
            self._result = {}
            self._progress.epoch_started(epoch)
            yield epoch
            if self._is_over:
                return

    def batches(self, epoch):
        """Yield the batches of an epoch that are left, until the last or a request to stop."""
        is_first = epoch == self._start.epoch
        self._epoch, self._steps_done = epoch, self._start.step if is_first else 0
        begin = self._seeds.begin(self._steps_done) if self._seeds else self._steps_done
        with profiled(self._args.profile if is_first else None, self._workers.rank):
            epoch_batches = self._progress.read(self._loader.epoch(epoch, begin))
            for step, batch in enumerate(epoch_batches, begin):
                if self._seeds:
                    self._seeds.step(epoch, step)
                if step < self._steps_done:
                    self._draw_again(batch)
                    continue
                yield batch
                self._steps_done = step + 1
                if self._stopper.should_stop():
                    return

    def step_done(self, batch, outputs, labels):
        """Count a step, and wait until few enough are queued.

        Parameters
        ----------
        batch : loader.Batch
        outputs, labels : list of NDArray, shapes (n_i, classes) and (n_i,)
            Of each device that had examples.
        """
        self._progress.batch_done(self._epoch, self._steps_done, batch, outputs, labels)
        if (self._steps_done + 1) % self._args.disp_batches == 0:
            when = f"Epoch[{self._epoch}] Batch [{self._steps_done + 1}]"
            check_parameters(self._net, when)
            warn_of_scores(outputs, when)
        self._queued.append(outputs)  # a request to stop waits for all of these; they take memory
        if len(self._queued) > STEPS_AHEAD:
            for output in self._queued.popleft():
                output.wait_to_read()

    def stopped_within(self, epoch):
        """Tell whether the workers were asked to stop within the epoch; if so, save."""
        self._queued.clear()
        self._trainer.epoch_done(self._workers)
        check_parameters(self._net, f"Epoch {epoch}")  # so before a test, and before it is saved
        self._trained = self._progress.trained()  # all is computed: the check has waited for it
        return self._saver.stopped_within(epoch, self._steps_done)

    def is_test_due(self, epoch):
        """Tell whether to evaluate now: every ``--test-period`` epochs, and after the last."""
        return self._is_last(epoch) or (epoch + 1) % self._args.test_period == 0

    def flips(self, epoch):
        """Tell whether to test each image and its mirror image."""
        when = self._args.flip_test
        return when == "1" or (when == "last" and self._is_last(epoch))

    def test_done(self, result):
        """Take the result of :func:`training.evaluate`."""
        self._result = result

    def epoch_done(self, epoch):
        """Report the epoch and save if it is time."""
        result, target = self._result, self._args.target_accuracy
        if not result:
            average_statistics(self._net, self._workers)  # saved as after a test
        more = self._trainer.measure_staleness(self._workers)
        speed, counts = self._trained
        rows = self._workers.gather([speed, *counts])
        for rank, (speed, *_) in enumerate(rows):
            more[f"samples_per_s_worker_{rank}"] = speed
        if self._args.log_dir:
            more.update(train_results(rows[:, 1:].sum(axis=0), self._args.top_k))
            more["gradient_norm"] = gradient_norm(self._trainer)
        self._progress.epoch_done(epoch, result, self._trainer.learning_rate, more)
        # All workers have the same accuracy, so all stop here or none does.
        has_reached = bool(result and target and result["accuracy"] >= target)
        if has_reached:
            self._progress.say(f"Epoch {epoch}: reached --target-accuracy {target:g}")
        is_last = has_reached or self._is_last(epoch)
        accuracy = result.get("accuracy")
        self._is_over = self._saver.epoch_done(epoch + 1, is_last, accuracy=accuracy)

    def finish(self):
        """Wait for the files and for the other workers; return the exit status."""
        if self._saver is None:
            self._workers.barrier()
            return 0
        if self._args.benchmark and self._workers.rank == 0:
            self._progress.report_size(self._net)
        self._progress.close()
        return self._saver.finish()  # nobody leaves while others still need the servers

    def _is_last(self, epoch):
        return epoch + 1 == self._args.num_epochs

    def _introduce(self):
        """Say what is trained, on what, by how many."""
        if self._workers.rank > 0:
            return
        args, workers = self._args, self._workers
        ctx = self._trainer._contexts
        self._progress.say(
            f"{args.network} on {self._images.name}: {workers.count} worker(s), "
            f"{len(ctx)} device(s) each ({', '.join(map(str, ctx))}), "
            f"kvstore {workers.store_type}, batch size {args.batch_size} a worker, "
            f"{self._loader.global_batch_size} in all, {len(self._loader)} steps an epoch"
        )
        for line in (*explain_defaults(args), *explain(args, self._trainer, workers)):
            self._progress.say(line)

    def _draw_again(self, batch):
        """Draw the random numbers that the stopped training drew, by a forward pass."""
        data, _ = split_batch(batch, self._trainer._contexts)
        with autograd.record():
            for part in data:
                self._net(part)
