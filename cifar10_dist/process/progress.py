"""What is told about the training: lines, a bar, TensorBoard, a file of metrics."""

import contextlib
import errno
import json
import math
import os
import resource
import sys
import time
from pathlib import Path

import mxnet as mx
from tqdm import tqdm

from process.failure import UsageError
from process.finite import warn_of_loss
from process.messages import warn
from sources.images import ImageSource
from workers import Workers


def measure_reading(args):
    """Read an epoch without training (``--test-io``) and print MXNet's speed lines."""
    workers = Workers(mx.kv.create(args.kv_store))
    loader, _ = ImageSource(args).split(workers)
    progress = Progress(workers.rank, len(loader), args.disp_batches)
    progress.epoch_started(0)
    for step, batch in enumerate(loader.epoch(0)):
        labels = [] if batch.label is None else [batch.label]
        progress.batch_done(0, step, batch, [], labels)
    workers.barrier()
    return 0


@contextlib.contextmanager
def profiled(path, rank):
    """Write a trace of what MXNet does to a file, ``rank1_`` before its name for worker 1."""
    if path is None:
        yield
        return
    target = Path(path)
    name = target.with_name(f"rank{rank}_{target.name}" if rank else target.name)
    mx.profiler.set_config(profile_all=True, filename=str(name), continuous_dump=False)
    mx.profiler.set_state("run")
    yield
    mx.nd.waitall()
    mx.profiler.set_state("stop")
    mx.profiler.dump()


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
        Folder for TensorBoard events and ``metrics.jsonl`` (one JSON object an epoch).
    is_measured : bool
        Whether to tell when the first batch is trained, which makes that step wait.
    """

    def __init__(self, rank, num_steps, disp_batches=20, log_dir=None, is_measured=False):
        self.is_first = rank == 0
        self._tells_first = is_measured and self.is_first
        self.num_steps, self.disp_batches = num_steps, disp_batches
        self._bar = None
        self._events = self._metrics = None
        if log_dir and self.is_first:
            self._open_files(log_dir)

    def epoch_started(self, epoch):
        """Start the clocks."""
        self._epoch_start = self._start = time.time()
        self._seen = self._seen_in_epoch = 0
        self._right, self._right_in_epoch = [], 0.0
        if self.is_first and sys.stderr and sys.stderr.isatty():
            self._bar = tqdm(total=self.num_steps, desc=f"Epoch {epoch}", unit="batch", leave=False)

    def batch_done(self, epoch, step, batch, outputs, labels):
        """Count a batch; now and then print MXNet's speed line, of this worker's examples."""
        if self._tells_first:
            mx.nd.waitall()
            self.say(f"First batch at {time.time():.3f}")
            self._tells_first = False
        self._seen += sum(len(y) for y in labels)
        # Kept on the devices: reading a number here would make every step wait for the last, and
        # adding them up there would wait for a working memory that updates may hold.
        self._right += [out.argmax(axis=1) == y for out, y in zip(outputs, labels)]
        if self._bar is not None:
            self._bar.update()
        if (step + 1) % self.disp_batches == 0 or step + 1 == self.num_steps:
            seen, right = self._seen, self._collect()
            seconds = time.time() - self._start
            if (step + 1) % self.disp_batches == 0 and self.is_first:
                speed, accuracy = seen / max(seconds, 1e-9), right / max(seen, 1)
                self.say(
                    f"Epoch[{epoch}] Batch [{step + 1}]\tSpeed: {speed:.2f} samples/sec"
                    f"\taccuracy={accuracy:f}"
                )
            self._start = time.time()

    def epoch_done(self, epoch, result, lr, late=None):
        """Report an epoch.

        Parameters
        ----------
        epoch : int
        result : dict
            Of :func:`training.evaluate`, or empty: not tested.
        lr : float
            Learning rate of the last step.
        late : dict, optional
            Of :meth:`asynchronous.AsyncTrainer.measure_staleness`.
        """
        train_accuracy = self._right_in_epoch / max(self._seen_in_epoch, 1)
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
        if late and self.is_first:
            self.say(
                f"Epoch {epoch}: staleness of gradients: {late['staleness_mean']:.2f} updates by "
                f"other workers on average, {late['staleness_max']} at most"
            )
        row = {
            "epoch": epoch,
            "train_accuracy": train_accuracy,
            "learning_rate": lr,
            "seconds": seconds,
        }
        row.update(late or {})
        row.update({f"test_{name}": value for name, value in result.items()})
        if self._metrics:
            self._write(epoch, row)

    def report_size(self, net):
        """Print the number of parameters that are learned, and the peak memory of this process."""
        learned = [
            p.list_data()[0].size for p in net.collect_params().values() if p.grad_req != "null"
        ]
        peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024  # Linux counts in kB
        self.say(f"Parameters: {sum(learned)}\nPeak memory: {peak_mb:.1f} MB")

    def say(self, line):
        """Print a line where the bar does not overwrite it."""
        if self._bar is not None:
            self._bar.clear()
        try:
            print(line, flush=True)
        except OSError as error:
            if error.errno != errno.ENOSPC:  # a log on a full disk does not end the training
                raise

    def close(self):
        """Close the files."""
        for file in filter(None, (self._events, self._metrics)):
            with contextlib.suppress(OSError):  # told already
                file.close()

    def _collect(self):
        """Move what was counted since the last line into the epoch's sums, and return the right."""
        right = sum(float(hits.asnumpy().sum()) for hits in self._right)
        self._right_in_epoch += right
        self._seen_in_epoch += self._seen
        self._right, self._seen = [], 0
        return right

    def _write(self, epoch, row):
        """Keep an epoch's numbers; a disk that is full does not end the training."""
        try:
            known = {k: v if math.isfinite(v) else None for k, v in row.items()}  # JSON has no NaN
            print(json.dumps(known), file=self._metrics, flush=True)
            self._events.write_event(self._event(row, epoch))
            self._events.flush()
        except OSError as error:
            warn(f"{self._metrics.name}: epoch {epoch} could not be written: {error.strerror}")

    def _open_files(self, log_dir):
        # Slow to import, and needed here only. Not its SummaryWriter: a thread of that writes, dies
        # when the disk is full, and the training would wait for it for ever.
        from tensorboardX.event_file_writer import EventsWriter
        from tensorboardX.proto.event_pb2 import Event
        from tensorboardX.proto.summary_pb2 import Summary

        def event(row, epoch):
            values = [Summary.Value(tag=name, simple_value=value) for name, value in row.items()]
            return Event(wall_time=time.time(), step=epoch, summary=Summary(value=values))

        self._event = event
        try:
            os.makedirs(log_dir, exist_ok=True)
            self._metrics = open(os.path.join(log_dir, "metrics.jsonl"), "a")  # noqa: SIM115  see close
            self._events = EventsWriter(os.path.join(log_dir, "events"))
        except OSError as error:
            raise UsageError(f"--log-dir {log_dir}: cannot be written: {error.strerror}") from None
