"""Reports on the training: lines, a progress bar, TensorBoard, a file of metrics."""

import resource
import sys
import time

from gluon_dist.common.finite import warn_of_loss
from gluon_dist.common.messages import report
from gluon_dist.setup import environment

import mxnet as mx
from tqdm import tqdm

from run.metrics import Metrics
from run.scores import Scores

QUEUED = 3  # steps that Python queues before MXNet has computed the first
FIRST = "{l_bar}{bar}| {n_fmt}/{total_fmt} [{elapsed}<?]"  # without a rate
LATER = "{l_bar}{bar}| {n_fmt}/{total_fmt} [{elapsed}<{remaining}{postfix}]"


class Progress:
    """Counts, times and reports.

    Speed lines, the bar and the files are rank 0's; every worker prints its accuracy line.

    Parameters
    ----------
    rank : int
    num_steps : int
        Steps of an epoch.
    disp_batches : int
        Batches between two speed lines.
    log_dir : str, optional
        Folder of :class:`run.metrics.Metrics`.
    start : run.resume.Start, optional
        Where the training begins, with log_dir.
    is_measured : bool
        Whether to print when the first batch is trained; that step then waits for MXNet.
    top_k : int
        With log_dir, also count the examples whose label is among the ``top_k`` first; 0 for no.
    num_epochs : int
        Of the whole training, for the bar.
    """

    def __init__(
        self,
        rank,
        num_steps,
        disp_batches=20,
        log_dir=None,
        start=None,
        is_measured=False,
        top_k=0,
        num_epochs=1,
    ):
        self.is_first = rank == 0
        self._times_first_batch = is_measured and self.is_first
        self.num_steps, self.disp_batches, self.num_epochs = num_steps, disp_batches, num_epochs
        self._bar = None
        self._metrics = Metrics(log_dir, start) if log_dir and self.is_first else None
        self._scores = Scores(with_loss=bool(log_dir), top_k=top_k if log_dir else 0)
        self._start_clocks()

    def epoch_started(self, epoch):
        """Start the clocks, and the bar on a terminal."""
        self._start_clocks()
        self._begin_bar(epoch)

    def batch_done(self, epoch, steps_done, outputs, labels):
        """Count a batch; now and then print MXNet's speed line, of this worker's examples."""
        if self._times_first_batch:
            mx.nd.waitall()
            self.say(f"First batch at {time.time():.3f}")
            self._times_first_batch = False
        self._scores.add(outputs, labels)
        self._steps += 1
        if self._bar is not None:
            self._move_bar(labels)
        if steps_done % self.disp_batches == 0 or steps_done == self.num_steps:
            new = self._scores.collect()
            seconds = time.time() - self._start
            if steps_done % self.disp_batches == 0 and self.is_first:
                speed = new.examples / max(seconds, 1e-9)
                line = f"Epoch[{epoch}] Batch [{steps_done}]\tSpeed: {speed:.2f} samples/sec"
                if outputs:  # not with --test-io
                    line += f"\taccuracy={new.right / max(new.examples, 1):f}"
                self.say(line)
            self._start = time.time()

    def _begin_bar(self, epoch):
        """Begin a bar; only worker 0 has one without a launcher."""
        is_alone = self.is_first and sys.stderr and sys.stderr.isatty()
        if is_alone or environment.shows_progress():
            self._bar = tqdm(
                total=self.num_steps,
                desc=f"Epoch {epoch} ({epoch + 1} of {max(epoch + 1, self.num_epochs)})",
                unit="batch",
                leave=False,
                mininterval=0.5,
                smoothing=0,  # a mean: steps come in bursts
                bar_format=FIRST,
            )

    def _move_bar(self, labels):
        """Show a step more; the clock of the rate starts when MXNet has computed the first."""
        bar = self._bar
        if self._steps > QUEUED:
            self._rated += sum(len(y) for y in labels)
            seconds = max(time.time() - self._rated_since, 1e-9)
            bar.set_postfix_str(f"{self._rated / seconds:.0f} samples/s", refresh=False)
        bar.update()
        if self._steps == QUEUED:
            bar.initial, bar.start_t, bar.bar_format = bar.n, time.time(), LATER
            self._rated, self._rated_since = 0, time.time()

    def read(self, batches):
        """Yield from an iterator; add the time of waiting for it to ``seconds_reading``."""
        batches = iter(batches)
        while True:
            began = time.time()
            batch = next(batches, None)
            self._reading_s += time.time() - began
            if batch is None:
                return
            yield batch

    def trained(self):
        """Return the seconds and counts of an epoch's training, which is complete.

        Returns
        -------
        seconds : float
        counts : run.scores.Counts
            Of this worker's examples.
        """
        self._trained_s = time.time() - self._epoch_start
        if self._bar is not None:
            self._bar.set_description_str(f"{self._bar.desc.rstrip(' :')}, testing")
        return self._trained_s, self._scores.counts

    def epoch_done(self, epoch, result, lr, more=None):
        """Report an epoch.

        Parameters
        ----------
        epoch : int
        result : dict
            Of :func:`training.evaluate`, or empty: not tested.
        lr : float
            Learning rate of the last step.
        more : dict of str to float, optional
            Further numbers for the row, such as those of
            :meth:`gluon_dist.Trainer.measure_staleness`.
        """
        more = more or {}
        seconds = time.time() - self._epoch_start
        if self._bar is not None:
            self._bar.close()
            self._bar = None
        line = f"Epoch {epoch}: "
        line += f"Test_acc {result['accuracy']:f}" if result else "not tested"
        if "top_k_accuracy" in result:
            line += f" Test_top_k_acc {result['top_k_accuracy']:f}"
        self.say(line)
        if result and self.is_first:
            warn_of_loss(result["loss"], f"Epoch {epoch}")
        if "staleness_mean" in more and self.is_first:
            self.say(
                f"Epoch {epoch}: staleness of gradients: {more['staleness_mean']:.2f} updates by "
                f"other workers on average, {more['staleness_max']} at most"
            )
        if self._metrics:
            row = {
                "epoch": epoch,
                "learning_rate": lr,
                "seconds": seconds,
                "seconds_reading": self._reading_s,
                "seconds_training": self._trained_s or seconds,
                **more,
            }
            row.update({f"test_{name}": value for name, value in result.items()})
            self._metrics.write(epoch, row)

    def report_size(self, net):
        """Print the number of parameters that are learned, and the peak memory of this process."""
        learned = [
            p.list_data()[0].size for p in net.collect_params().values() if p.grad_req != "null"
        ]
        peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024  # Linux counts in kB
        if sys.platform == "darwin":  # in bytes
            peak_mb /= 1024
        self.say(f"Parameters: {sum(learned)}\nPeak memory: {peak_mb:.1f} MB")

    def say(self, line):
        """Print a line where the bar does not overwrite it; the launcher has rows for bars."""
        is_in_the_way = self._bar is not None and not environment.shows_progress()
        if is_in_the_way:
            self._bar.clear()
        report(line)
        if is_in_the_way:
            self._bar.refresh()

    def close(self):
        """Close the files."""
        if self._metrics:
            self._metrics.close()

    def _start_clocks(self):
        self._epoch_start = self._start = time.time()
        self._scores.begin()
        self._reading_s, self._trained_s = 0.0, None
        self._steps = 0  # of this epoch, in this process
