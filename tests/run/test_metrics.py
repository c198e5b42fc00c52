"""What `--log-dir` keeps of each epoch."""

import json
import struct
import sys
from types import SimpleNamespace

from gluon_dist import contract
from gluon_dist.checkpoint.manifest import Manifest

import mxnet as mx
import numpy as np
import pytest
from tensorboardX.proto.event_pb2 import Event, SessionLog

from launching import PROGRAMS, TRAIN, launch
from run.metrics import Metrics, gradient_norm, run_name, train_results
from run.resume import Start
from run.scores import Counts

TIME_BUDGET_S = 40
FEW = ("--data", "synthetic", "--num-examples", "128", "--batch-size", "32")
FEW += ("--network", "resnet", "--num-layers", "8")


def read_events(folder):
    """The events of a folder, in order: TFRecords, a length and two checksums beside the data."""
    for path in sorted(folder.glob("events.out.tfevents.*")):
        content, place = path.read_bytes(), 0
        while place < len(content):
            (length,) = struct.unpack_from("<Q", content, place)
            yield Event.FromString(content[place + 12 : place + 12 + length])
            place += 16 + length


def shown(folder):
    """The values that TensorBoard shows for each step; those of repeated epochs once."""
    rows = {}
    for event in read_events(folder):
        if event.session_log.status == SessionLog.START:
            rows = {step: row for step, row in rows.items() if step < event.step}
        if event.summary.value:
            assert event.step not in rows
            rows[event.step] = {value.tag: value.simple_value for value in event.summary.value}
    return list(rows.values())


def rows_of(folder):
    """The rows of a folder, without the training's name."""
    rows = map(json.loads, (folder / "metrics.jsonl").read_text().splitlines())
    return [{k: v for k, v in row.items() if k not in ("run", "job")} for row in rows]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """What a run of two workers keeps of two epochs."""
    path = tmp_path_factory.mktemp("log")
    options = ("--num-epochs", "2", "--top-k", "5", "--log-dir", path / "{run}")
    job = launch(path, "-n", 2, *TRAIN, *FEW, *options, env={"OMP_NUM_THREADS": "1"})
    assert job.status == 0, job.text()
    (found,) = path.glob("resnet*")
    return found


@pytest.mark.long
def test_the_folder_is_named_after_the_run(folder):
    assert folder.name == "resnet8-2workers-1device-batch32-float32"
    args = SimpleNamespace(network="fast", num_layers=None, batch_size=128, dtype="bfloat16")
    assert run_name(args, 1, 4) == "fast-1worker-4devices-batch128-bfloat16"


@pytest.mark.long
def test_a_row_tells_of_learning_and_of_time(folder):
    rows = rows_of(folder)
    assert [row["epoch"] for row in rows] == [0, 1]
    for row in rows:
        assert 0 < row["seconds_reading"] < row["seconds_training"] < row["seconds"]
        assert row["samples_per_s_worker_0"] > 0 < row["samples_per_s_worker_1"]
        assert 0 < row["gradient_norm"] < 1000 and row["test_top_k_accuracy"] <= 1
    assert 0 < rows[1]["train_loss"] < rows[0]["train_loss"] < 5


@pytest.mark.long
def test_tensorboard_gets_the_same_numbers(folder):
    assert shown(folder) == [pytest.approx(row, rel=1e-6) for row in rows_of(folder)]


ANOTHER = Manifest(run="a")  # a checkpoint of the training whose rows are there
JOB = {contract.JOB: "j", contract.ATTEMPT: "2"}


@pytest.mark.parametrize(
    "start, env, kept, moved",
    [
        (Start({}, 3, run="a"), {}, [0, 1, 2], []),  # was killed: its last checkpoint is of epoch 3
        (Start({}, 5, run="a"), {}, [0, 1, 2, 3, 4], []),
        (Start({}, 0, run="b"), JOB, [], []),  # was killed before the first, and started again
        (Start({}, 0, run="b"), {}, [], [0, 1, 2, 3, 4]),
        (Start({}, 5, run="b", manifest=ANOTHER), {}, [0, 1, 2, 3, 4], []),
        (Start({}, 3, run="b", manifest=ANOTHER), {}, [], [0, 1, 2, 3, 4]),
    ],
)
def test_a_folder_has_each_epoch_once(tmp_path, monkeypatch, start, env, kept, moved):
    monkeypatch.setenv(contract.JOB, "j")
    monkeypatch.setenv(contract.ATTEMPT, "1")
    write_epochs(tmp_path, Start({}, run="a"), 5)
    with open(tmp_path / "metrics.jsonl", "a") as file:
        file.write('{"epoch": 5, "lo')  # it was killed here
    monkeypatch.setenv(contract.JOB, "another")
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    write_epochs(tmp_path, start, 8)
    epochs = [*kept, *range(start.epoch, 8)]
    for found in rows_of(tmp_path), shown(tmp_path):
        assert [row["epoch"] for row in found] == epochs
    assert [row["epoch"] for row in shown(tmp_path / "earlier-1")] == moved


def write_epochs(folder, start, end):
    """Write the rows that a training writes from its beginning to an epoch."""
    metrics = Metrics(str(folder), start)
    for epoch in range(start.epoch, end):
        metrics.write(epoch, {"epoch": epoch, "train_loss": 1.5})
    metrics.close()


def test_other_files_in_the_folder_stay(tmp_path, capsys):
    (tmp_path / "metrics.jsonl").write_text("by hand\n")
    (tmp_path / "earlier-1").mkdir()
    write_epochs(tmp_path, Start({}), 1)
    assert (tmp_path / "earlier-2" / "metrics.jsonl").read_text() == "by hand\n"
    said = f"warning: --log-dir {tmp_path}: the metrics of another training there are now in"
    assert said in capsys.readouterr().err and len(rows_of(tmp_path)) == 1


@pytest.mark.long
@pytest.mark.parametrize("kind", ["dist_sync", "dist_async"])
def test_training_is_scored_on_every_example_of_all_workers_and_devices_once(tmp_path, kind):
    program = (sys.executable, PROGRAMS / "keep_scores.py", tmp_path, *FEW)
    options = ("--num-examples", "129", "--num-epochs", "1", "--cpus", "2", "--kv-store", kind)
    options += ("--top-k", "3", "--log-dir", tmp_path, "--disp-batches", "1")
    job = launch(tmp_path, "-n", 2, *program, *options, env={"OMP_NUM_THREADS": "1"})
    assert job.status == 0, job.text()
    files = [np.load(tmp_path / f"scores-{rank}.npz") for rank in range(2)]
    scores, labels = (np.concatenate([f[name] for f in files]) for name in ("scores", "labels"))
    order = np.argsort(-scores, axis=1)
    row = json.loads((tmp_path / "metrics.jsonl").read_text())
    assert len(labels) == 129 and row["train_accuracy"] == np.mean(order[:, 0] == labels)
    assert row["train_top_k_accuracy"] == np.mean((order[:, :3] == labels[:, None]).any(axis=1))
    right = scores[np.arange(129), labels.astype(int)].astype("float64")
    loss = np.log(np.exp(scores.astype("float64")).sum(axis=1)) - right
    assert row["train_loss"] == pytest.approx(loss.mean(), rel=1e-5)


def test_without_top_k_no_row_has_an_accuracy_of_it():
    counts = Counts(right=3, right_top_k=0, loss=2, examples=4)
    assert train_results(counts, 0) == {"train_accuracy": 0.75, "train_loss": 0.5}


def test_the_norm_is_of_all_gradients_without_the_loss_scale():
    param = mx.gluon.Parameter("w", shape=(2,))
    param.initialize(ctx=[mx.cpu(0)])
    param.grad()[:] = mx.nd.array([6, 8])
    trainer = SimpleNamespace(learned=[param, param], loss_scale=2)
    assert gradient_norm(trainer) == pytest.approx(200**0.5 / 2)
