"""What `--log-dir` keeps of each epoch."""

import json
import struct
import sys
from types import SimpleNamespace

import mxnet as mx
import numpy as np
import pytest
from tensorboardX.proto.event_pb2 import Event

from launching import PROGRAMS, TRAIN, launch
from run.metrics import gradient_norm, run_name

TIME_BUDGET_S = 40
FEW = ("--data", "synthetic", "--num-examples", "128", "--batch-size", "32")
FEW += ("--network", "resnet", "--num-layers", "8")


def read_events(path):
    """The values of each event by name: TFRecords, a length and two checksums beside the data."""
    content, place, rows = path.read_bytes(), 0, []
    while place < len(content):
        (length,) = struct.unpack_from("<Q", content, place)
        event = Event.FromString(content[place + 12 : place + 12 + length])
        rows.append({value.tag: value.simple_value for value in event.summary.value})
        place += 16 + length
    return [row for row in rows if row]


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
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert [row["epoch"] for row in rows] == [0, 1]
    for row in rows:
        assert 0 < row["seconds_reading"] < row["seconds_training"] < row["seconds"]
        assert row["samples_per_s_worker_0"] > 0 < row["samples_per_s_worker_1"]
        assert 0 < row["gradient_norm"] < 1000 and row["test_top_k_accuracy"] <= 1
    assert 0 < rows[1]["train_loss"] < rows[0]["train_loss"] < 5


@pytest.mark.long
def test_tensorboard_gets_the_same_numbers(folder):
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    (path,) = folder.glob("events*")
    assert read_events(path) == [pytest.approx(row, rel=1e-6) for row in rows]


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


@pytest.mark.long
def test_without_top_k_no_row_has_an_accuracy_of_it(tmp_path):
    options = ("--num-epochs", "1", "--log-dir", tmp_path)
    job = launch(tmp_path, "-n", 1, *TRAIN, *FEW, *options)
    row = json.loads((tmp_path / "metrics.jsonl").read_text())
    assert job.status == 0 and not [name for name in row if "top_k" in name]


def test_the_norm_is_of_all_gradients_without_the_loss_scale():
    param = mx.gluon.Parameter("w", shape=(2,))
    param.initialize(ctx=[mx.cpu(0)])
    param.grad()[:] = mx.nd.array([6, 8])
    trainer = SimpleNamespace(learned=[param, param], loss_scale=2)
    assert gradient_norm(trainer) == pytest.approx(200**0.5 / 2)
