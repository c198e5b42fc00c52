"""The program itself: every store, several workers, old command lines, saved networks."""

import json
import re
import sys

import mxnet as mx
import numpy as np
import pytest

from launching import TRAIN, accuracies, launch, train
from processors import HAS_AVX512
from record_files import write
from restarting import params
from run.progress import Progress
from run.resume import Start
from sources import synthetic

TIME_BUDGET_S = 200
SMALL = ("--data", "synthetic", "--network", "resnet", "--num-layers", "8")
SHORT = (*SMALL, "--num-examples", "240", "--batch-size", "12", "--num-epochs", "1")


def assert_agree(job, workers, epochs):
    """Assert success, and that every worker printed the same accuracy for every epoch."""
    assert job.status == 0, job.stdout + job.stderr
    printed = accuracies(job.stdout)
    assert [len(values) for values in printed] == [workers] * epochs, job.stdout
    assert all(len(set(values)) == 1 for values in printed), job.stdout
    return [values[0] for values in printed]


def rows_in(folder):
    return [json.loads(row) for row in (folder / "metrics.jsonl").read_text().splitlines()]


@pytest.mark.long
@pytest.mark.parametrize("kind", ["local", "device"])
def test_devices_of_one_process_train(kind, tmp_path):
    job = train(tmp_path, *SHORT, "--kv-store", kind, "--cpus", "2")
    assert len(assert_agree(job, 1, 1)) == 1
    assert f"2 devices each (cpu(0), cpu(1)), kvstore {kind}" in job.stdout


def test_two_workers_learn_and_the_lines_are_as_promised(tmp_path):
    size = ("--num-examples", "1280", "--batch-size", "32", "--num-epochs", "3")
    job = launch(tmp_path, "-n", 2, *TRAIN, *SMALL, *size)
    assert assert_agree(job, 2, 3)[-1] > 0.8
    line = r"\[worker 0\] Epoch\[0\] Batch \[20\]\tSpeed: \d+\.\d\d samples/sec\taccuracy=0\.\d{6}"
    assert re.search(line, job.stdout), job.stdout
    assert "[worker 1] Epoch[0]" not in job.stdout


@pytest.mark.long
@pytest.mark.parametrize("kind", ["dist_sync", "dist_async"])
def test_all_workers_hold_the_same_parameters(kind, tmp_path):
    few_steps = ("--num-examples", "160", "--batch-size", "16", "--num-epochs", "1")
    options = ("--data", "synthetic", "--network", "cifar_resnet20_v1", *few_steps)
    command = (sys.executable, "tests/programs/same_parameters.py", *options)
    job = launch(tmp_path, "-n", 2, *command, "--kv-store", kind, "--cpus", "2", "--top-k", "3")
    assert job.status == 0, job.stdout + job.stderr
    assert job.stdout.count("the same parameters") == 2
    assert "2 workers, 2 devices each" in job.stdout and "Test_top_k_acc" in job.stdout


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:Cannot decide type")  # of MXNet's own import
def test_an_old_command_line_trains_and_saves_files_that_plain_mxnet_loads(tmp_path):
    old = ["--network", "resnet", "--num-layers", "8", "--kv-store", "dist_device_sync"]
    prefix = str(tmp_path / "out" / "model")
    extra = ["--num-epoch", "1", "--data", "synthetic", "--num-examples", "640", "--monitor", "1"]
    job = launch(tmp_path, "-n", 2, *TRAIN, *old, "--model-prefix", prefix, *extra, "--gpus")
    (accuracy,) = assert_agree(job, 2, 1)
    assert "warning: no effect here: --monitor" in job.stderr
    ends = ("0001.json", "0001.params", "0001.state", "symbol.json")
    assert {p.name for p in (tmp_path / "out").iterdir()} == {f"model-{end}" for end in ends}
    net = mx.gluon.SymbolBlock.imports(f"{prefix}-symbol.json", ["data"], f"{prefix}-0001.params")
    images, labels = synthetic.make_images(synthetic.NUM_TEST, seed=1)
    right = net(mx.nd.array(images / 255.0)).asnumpy().argmax(axis=1) == labels
    assert np.mean(right) == pytest.approx(accuracy, abs=1e-3)
    assert mx.model.load_checkpoint(prefix, 1)[1]


@pytest.mark.long
def test_training_goes_on_from_a_saved_epoch(tmp_path):
    prefix = ("--model-prefix", str(tmp_path / "model"), "--log-dir", str(tmp_path / "log"))
    assert train(tmp_path, *SHORT, *prefix).status == 0
    job = train(tmp_path, *SHORT, *prefix, "--num-epochs", "2", "--load-epoch", "1")
    assert job.status == 0 and "Epoch 1: Test_acc" in job.stdout
    assert "Epoch 0:" not in job.stdout
    assert [row["epoch"] for row in rows_in(tmp_path / "log")] == [0, 1]
    assert any(p.name.startswith("events") for p in (tmp_path / "log").iterdir())


@pytest.mark.long
def test_what_is_trained_and_saved_does_not_depend_on_how_often_it_is_tested(tmp_path):
    few = (*SMALL, "--num-examples", "256", "--batch-size", "64", "--num-epochs", "3")
    rows = {}
    for period in ("1", "2"):
        folder = tmp_path / period
        keep = ("--model-prefix", str(folder / "model"), "--log-dir", str(folder))
        program = (*TRAIN, *few, "--test-period", period, *keep)
        job = launch(tmp_path, "-n", 2, *program, env={"OMP_NUM_THREADS": "1"})
        assert job.status == 0, job.stdout + job.stderr
        rows[period] = rows_in(folder)
    assert "[worker 1] Epoch 0: not tested\n" in job.stdout
    assert ["test_accuracy" in row for row in rows["2"]] == [False, True, True]
    assert rows["2"][1]["test_loss"] == rows["1"][1]["test_loss"]
    for epoch in ("0001", "0002", "0003"):
        often, seldom = (params(tmp_path / period / "model", epoch) for period in ("1", "2"))
        assert often.keys() == seldom.keys() and often
        assert all((often[name] == seldom[name]).all() for name in often), epoch


@pytest.mark.long
@pytest.mark.parametrize("kind", ["dist_sync", "dist_async"])
def test_a_target_is_looked_at_in_tested_epochs_only(kind, tmp_path):
    often = ("--kv-store", kind, "--num-epochs", "5", "--test-period", "2")
    few = (*SMALL, "--num-examples", "256", "--batch-size", "64", "--target-accuracy", "0.001")
    job = launch(tmp_path, "-n", 2, *TRAIN, *few, *often)
    assert job.status == 0, job.stdout + job.stderr
    assert "Epoch 0: not tested" in job.stdout and "Epoch 1: Test_acc" in job.stdout
    assert "Epoch 1: reached --target-accuracy" in job.stdout and "Epoch 2:" not in job.stdout


@pytest.mark.long
def test_measuring_flags_read_only_repeat_a_batch_and_write_a_trace(tmp_path):
    reading = train(tmp_path, *SHORT, "--test-io", "1", "--disp-batches", "10")
    assert reading.status == 0 and "Batch [20]\tSpeed" in reading.stdout
    assert "acc" not in reading.stdout
    trace = tmp_path / "trace.json"
    job = train(tmp_path, *SHORT, "--benchmark", "1", "--profile", str(trace))
    assert job.status == 0, job.stderr
    names = {event.get("name") for event in json.loads(trace.read_text())["traceEvents"]}
    assert any("Convolution" in str(name) or "CachedOp" in str(name) for name in names)


@pytest.mark.long
def test_without_a_network_images_are_made_and_a_warning_says_so(tmp_path):
    nowhere = dict.fromkeys(("http_proxy", "https_proxy"), "http://127.0.0.1:9")
    options = ("--data", "auto", "--data-dir", str(tmp_path), *SHORT[2:])
    job = train(tmp_path, *options, env=nowhere)
    assert job.status == 0 and "on synthetic images" in job.stdout, job.stderr
    assert job.stderr.count("warning: CIFAR-10 was not found and could") == 1
    refused = train(tmp_path, "--data", "cifar10", *options[2:], env=nowhere)
    assert refused.status == 2 and "no address gave CIFAR-10" in refused.stderr


@pytest.mark.long
def test_bfloat16_trains_where_the_processor_can(tmp_path):
    job = train(tmp_path, *SHORT, "--dtype", "bfloat16")
    if HAS_AVX512:
        assert job.status == 0 and len(accuracies(job.stdout)) == 1, job.stderr
    else:
        assert job.status == 2 and "needs a processor with AVX-512" in job.stderr, job.text()


@pytest.mark.long
def test_only_the_first_worker_needs_the_saved_files(tmp_path):
    """Worker 1 looks where nothing is, and has the parameters of worker 0 all the same."""
    assert train(tmp_path, *SHORT, "--model-prefix", str(tmp_path / "0" / "model")).status == 0
    more = f"{' '.join(SHORT)} --num-epochs 2 --load-epoch 1 --benchmark 1"
    prefix = f"--model-prefix {tmp_path}/$LAUNCH_WORKER_ID/model"
    job = launch(
        tmp_path, "-n", 2, f"{sys.executable} tests/programs/same_parameters.py {more} {prefix}"
    )
    assert job.status == 0 and job.stdout.count("the same parameters") == 2, job.stderr


def test_a_full_disk_for_the_metrics_does_not_end_the_training(tmp_path, capsys):
    (tmp_path / "metrics.jsonl").symlink_to("/dev/full")
    progress = Progress(0, 1, log_dir=str(tmp_path), start=Start({}))
    progress.epoch_started(0)
    progress.epoch_done(0, {"accuracy": 0.5, "loss": 1.0}, 0.1)
    progress.close()
    printed = capsys.readouterr()
    assert printed.out == "Epoch 0: Test_acc 0.500000\n"
    assert "metrics.jsonl: epoch 0 could not be written: No space left on device" in printed.err


def test_metrics_are_json_also_where_the_loss_is_no_number(tmp_path):
    progress = Progress(0, 1, log_dir=str(tmp_path), start=Start({}))
    progress.epoch_started(0)
    progress.epoch_done(0, {"accuracy": 0.5, "loss": float("nan")}, float("inf"))
    progress.close()
    text = (tmp_path / "metrics.jsonl").read_text()
    row = json.loads(text, parse_constant=pytest.fail)
    assert (row["test_loss"], row["learning_rate"], row["test_accuracy"]) == (None, None, 0.5)


@pytest.mark.long
@pytest.mark.parametrize("network", ["resnet --num-layers 8", "fast"])
def test_devices_need_not_hold_the_current_one(tmp_path, network):
    """As GPUs, of which MXNet's current device, cpu(0), is none."""
    words = f"{sys.executable} tests/programs/other_devices.py --data synthetic --num-examples 640"
    words += f" --batch-size 64 --benchmark 1 --network {network} --model-prefix {tmp_path}/model"
    for epochs in (1, 2):
        job = launch(
            tmp_path, "-n", 2, *words.split(), "--num-epochs", str(epochs), "--resume", "auto"
        )
        assert_agree(job, 2, 1)
    assert "2 devices each (cpu(1), cpu(2))" in job.stdout and "model-0001" in job.stdout


def test_a_full_disk_for_tensorboard_does_not_end_the_training(tmp_path, capsys):
    progress = Progress(0, 1, log_dir=str(tmp_path), start=Start({}))
    file = progress._metrics.events._py_recordio_writer
    file._writer.close()
    file._writer = open("/dev/full", "wb")  # noqa: SIM115  closed below
    for epoch in range(20):
        progress.epoch_started(epoch)
        progress.epoch_done(epoch, {"accuracy": 0.5, "loss": 1.0}, 0.1)
    progress.close()
    printed = capsys.readouterr()
    assert printed.err.count("could not be written: No space left on device") == 20
    assert len((tmp_path / "metrics.jsonl").read_text().splitlines()) == 20


@pytest.mark.long
@pytest.mark.parametrize("limit", ["2", "0.000001"])
def test_record_files_are_trained_on_decoded_or_streamed(tmp_path, limit):
    train_file = write(tmp_path / "train.rec", [n % 10 for n in range(90)])
    test_file = write(tmp_path / "test.rec", [n % 10 for n in range(30)])
    files = ("--data-train", train_file, "--data-val", test_file, "--max-data-gb", limit)
    job = launch(
        tmp_path, "-n", 2, *TRAIN, *SMALL[2:], *files, "--batch-size", "16", "--num-epochs", "2"
    )
    assert_agree(job, 2, 2)
    assert "3 steps an epoch" in job.stdout
