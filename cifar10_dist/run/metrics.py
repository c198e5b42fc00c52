"""``--log-dir``: what is kept of each epoch, for TensorBoard and as ``metrics.jsonl``."""

import contextlib
import json
import math
import os
import time

from gluon_dist.common.errors import UsageError
from gluon_dist.common.messages import warn


def run_name(args, num_workers, num_devices):
    """Return a name that tells runs apart, such as ``resnet20-2workers-1device-batch128-float32``.

    The batch size is that of one worker, and the devices are, too.
    """
    network = f"{os.path.basename(args.network)}{args.num_layers or ''}"
    counts = ((num_workers, "worker"), (num_devices, "device"))
    words = (f"{count}{word}{'s' * (count > 1)}" for count, word in counts)
    return "-".join([network, *words, f"batch{args.batch_size}", args.dtype])


def gradient_norm(trainer):
    """Return the length of the gradient of the last step, on this worker's first device.

    Parameters
    ----------
    trainer : gluon_dist.Trainer
        In ``dist_async`` the gradient is this worker's own, else that of all workers.
    """
    grads = [param.list_grad()[0].astype("float32") for param in trainer.learned]
    squares = sum(float((grad**2).sum().asscalar()) for grad in grads)
    return math.sqrt(squares) / trainer.loss_scale


def train_results(counts, top_k):
    """Return accuracies in [0, 1] and loss (nats) of the examples of an epoch, by name.

    Parameters
    ----------
    counts : array_like, shape (4,)
        Right, right among the first ``top_k``, summed loss, and examples.
    """
    right, among, loss, num_examples = counts
    num_examples = max(num_examples, 1)
    results = {"train_accuracy": right / num_examples, "train_loss": loss / num_examples}
    return {**results, "train_top_k_accuracy": among / num_examples} if top_k else results


class Metrics:
    """Writes a row of numbers for each epoch; a disk that is full does not end the training.

    Parameters
    ----------
    log_dir : str
        Made if it is not there. Rows of a run that goes on are added to those before.

    Raises
    ------
    UsageError
        If the folder cannot be written.
    """

    def __init__(self, log_dir):
        # Slow to import, and needed here only. Not its SummaryWriter: a thread of that writes, dies
        # when the disk is full, and the training would wait for it for ever.
        from tensorboardX.event_file_writer import EventsWriter

        try:
            os.makedirs(log_dir, exist_ok=True)
            self.file = open(os.path.join(log_dir, "metrics.jsonl"), "a")  # noqa: SIM115  see close
            self.events = EventsWriter(os.path.join(log_dir, "events"))
        except OSError as error:
            raise UsageError(f"--log-dir {log_dir}: cannot be written: {error.strerror}") from None

    def write(self, epoch, row):
        """Keep an epoch's numbers, by name."""
        try:
            known = {k: v if math.isfinite(v) else None for k, v in row.items()}  # JSON has no NaN
            print(json.dumps(known), file=self.file, flush=True)
            self.events.write_event(_event(row, epoch))
            self.events.flush()
        except OSError as error:
            warn(f"{self.file.name}: epoch {epoch} could not be written: {error.strerror}")

    def close(self):
        """Close the files."""
        for file in self.events, self.file:
            with contextlib.suppress(OSError):  # told already
                file.close()


def _event(row, epoch):
    from tensorboardX.proto.event_pb2 import Event
    from tensorboardX.proto.summary_pb2 import Summary

    values = [Summary.Value(tag=name, simple_value=value) for name, value in row.items()]
    return Event(wall_time=time.time(), step=epoch, summary=Summary(value=values))
