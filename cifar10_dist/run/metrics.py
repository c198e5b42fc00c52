"""``--log-dir``: numbers of each epoch, for TensorBoard and in ``metrics.jsonl``."""

import contextlib
import glob
import json
import math
import os
import time
from itertools import count, takewhile

from gluon_dist.common.errors import UsageError
from gluon_dist.common.messages import warn
from gluon_dist.setup import environment

FILE = "metrics.jsonl"


def run_name(args, num_workers, num_devices):
    """Return a name of the run, such as ``resnet20-2workers-1device-batch128-float32``.

    Devices and batch size are those of one worker.
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
    counts : run.scores.Counts
        Of all workers.
    top_k : int
        0: leave the top-k accuracy out.
    """
    examples = max(counts.examples, 1)
    results = {"train_accuracy": counts.right / examples, "train_loss": counts.loss / examples}
    if top_k:
        results["train_top_k_accuracy"] = counts.right_top_k / examples
    return results


class Metrics:
    """Writes a row of numbers for each epoch; a full disk does not end the training.

    A resumed training appends to its files. Rows after its checkpoint are removed, as these epochs
    are trained again. Files of another training are moved to the folder ``earlier-1``.

    Parameters
    ----------
    log_dir : str
        Made if it is not there.
    start : run.resume.Start
        Where the training begins.

    Raises
    ------
    UsageError
        If the folder cannot be written.
    """

    def __init__(self, log_dir, start):
        # Imported here because it is slow. SummaryWriter is not used: its thread dies when the disk
        # is full, and the training would wait for it for ever.
        from tensorboardX.event_file_writer import EventsWriter

        path = os.path.join(log_dir, FILE)
        self._names = {"run": start.run, "job": environment.job_id()}
        try:
            os.makedirs(log_dir, exist_ok=True)
            continues = os.path.isfile(path) and _continue(path, start)
            self.file = open(path, "a", encoding="utf-8")  # noqa: SIM115  see close
            # Nanoseconds: two tries may begin within one second.
            self.events = EventsWriter(os.path.join(log_dir, "events"), f".{time.time_ns()}")
            if continues:
                self.events.write_event(_beginning(start.epoch))
        except OSError as error:
            raise UsageError(f"--log-dir {log_dir}: cannot be written: {error.strerror}") from None

    def write(self, epoch, row):
        """Write an epoch's numbers, by name."""
        try:
            known = {k: v if math.isfinite(v) else None for k, v in row.items()}  # JSON has no NaN
            print(json.dumps({**known, **self._names}), file=self.file, flush=True)
            self.events.write_event(_event(row, epoch))
            self.events.flush()
        except OSError as error:
            warn(f"{self.file.name}: epoch {epoch} could not be written: {error.strerror}")

    def close(self):
        """Close the files."""
        for file in self.events, self.file:
            with contextlib.suppress(OSError):  # `write` has warned
                file.close()


def _continue(path, start):
    """Return whether the file is of this training: then cut it, else move it out of the way."""
    with open(path, "rb+") as file:
        lines = file.readlines()
        rows = [_row(line) for line in lines]
        whole = [row for row, line in zip(rows, lines) if line.endswith(b"\n")]
        last = whole[-1] if whole else {"run": start.run}
        earlier = list(takewhile(lambda row: row.get("epoch", math.inf) < start.epoch, rows))
        is_same = last.get("run") == start.run or _is_of_this_job(last)
        if is_same or (last.get("run", "") == start.manifest.run and len(earlier) == len(whole)):
            file.truncate(sum(map(len, lines[: len(earlier)])))
            return True
    _move_away(path)
    return False


def _is_of_this_job(row):
    """Return whether an earlier try of this launcher's job wrote a row."""
    return environment.is_restarted() and row.get("job") == environment.job_id()


def _row(line):
    """Return the row in a line; an empty one if the line is incomplete or not JSON."""
    try:
        return dict(json.loads(line))
    except (ValueError, TypeError):
        return {}


def _move_away(path):
    """Move a training's files to the first ``earlier-N`` that is free beside them."""
    folder = os.path.dirname(path)
    names = (os.path.join(folder, f"earlier-{number}") for number in count(1))
    target = next(name for name in names if not os.path.lexists(name))
    os.mkdir(target)
    for file in glob.glob(os.path.join(glob.escape(folder), "events.out.tfevents.*")):
        os.replace(file, os.path.join(target, os.path.basename(file)))
    os.replace(path, os.path.join(target, FILE))
    warn(f"--log-dir {folder}: the metrics of another training there are now in {target}")


def _beginning(epoch):
    """Return the event that makes TensorBoard drop what it has from this epoch on."""
    from tensorboardX.proto.event_pb2 import Event, SessionLog

    session = SessionLog(status=SessionLog.START)
    return Event(wall_time=time.time(), step=epoch, session_log=session)


def _event(row, epoch):
    from tensorboardX.proto.event_pb2 import Event
    from tensorboardX.proto.summary_pb2 import Summary

    values = [Summary.Value(tag=name, simple_value=value) for name, value in row.items()]
    return Event(wall_time=time.time(), step=epoch, summary=Summary(value=values))
