"""Checkpoints on disk are complete or absent; other files are not taken for one."""

import json
import math
import os
import pickle
import signal
import subprocess
import sys
import time
from pathlib import Path

from gluon_dist.checkpoint import files as checkpoint
from gluon_dist.checkpoint.files import Broken
from gluon_dist.checkpoint.lock import hold
from gluon_dist.checkpoint.manifest import Manifest
from gluon_dist.exchange.buckets import Buckets

import mxnet as mx
import numpy as np
import pytest
from explicit import ExplicitTrainer
from mxnet.contrib.amp.loss_scaler import LossScaler
from mxnet.gluon import nn

from launching import TRAIN
from restarting import finished, training

TIME_BUDGET_S = 70


def write(prefix, epoch, step=0, run="r1"):
    values = {"arg:w": mx.nd.arange(1000) + epoch}
    state = {"optimizer:w:0": mx.nd.ones((3,))}
    return checkpoint.write(str(prefix), Manifest(epoch, step, run, job=""), "{}", values, state)


def read(prefix, place=0):
    entry = checkpoint.find(str(prefix))[place]
    if entry.error:
        raise Broken(entry.error)
    return checkpoint.read(entry.name, entry.manifest)


def test_what_is_written_is_read(tmp_path):
    assert write(tmp_path / "m", 3, 17) == str(tmp_path / "m-0003-00017")
    content, state = read(tmp_path / "m")
    assert checkpoint.parse_params(content)["w"].asnumpy().tolist() == list(range(3, 1003))
    assert checkpoint.parse_state(state)["optimizer:w:0"].tolist() == [1, 1, 1]
    names = {f"m-0003-00017.{end}" for end in ("json", "params", "state")}
    assert {path.name for path in tmp_path.iterdir()} == names | {"m-symbol.json"}


def test_the_newest_is_of_the_run_that_began_last_and_furthest_in_it(tmp_path):
    for epoch, step, run in [(5, 0, "r1"), (2, 0, "r2"), (2, 9, "r2"), (1, 0, "r2")]:
        write(tmp_path / "m", epoch, step, run)
    write(tmp_path / "m-2", 7)  # another prefix
    found = [(entry.epoch, entry.step) for entry in checkpoint.find(str(tmp_path / "m"))]
    assert found == [(2, 9), (2, 0), (1, 0), (5, 0)]


@pytest.mark.parametrize("ending", ["json", "params", "state"])
@pytest.mark.parametrize("damage", ["cut", "flip", "empty", "gone", "foreign"])
def test_every_damage_to_every_file_is_found(tmp_path, ending, damage):
    write(tmp_path / "m", 1)
    path = tmp_path / f"m-0001.{ending}"
    content = bytearray(path.read_bytes())
    if damage == "flip":
        content[len(content) // 2] ^= 1
    new = {"cut": content[:-9], "empty": b"", "foreign": b'{"format": "x"}'}.get(damage, content)
    path.write_bytes(new)
    if damage == "gone":
        path.unlink()
        if ending == "json":
            assert not checkpoint.find(str(tmp_path / "m"))
            return
    with pytest.raises(Broken, match=f"m-0001.{ending}: {'cut short' if damage == 'cut' else ''}"):
        read(tmp_path / "m")


def test_a_pickle_is_never_opened(tmp_path):
    class Bomb:
        def __reduce__(self):
            return (os.mkdir, (str(tmp_path / "exploded"),))

    np.savez(tmp_path / "a.npz", x=np.array([Bomb()], dtype=object))
    for content in ((tmp_path / "a.npz").read_bytes(), pickle.dumps(Bomb())):
        with pytest.raises(ValueError):
            checkpoint.parse_state(content)
    assert not (tmp_path / "exploded").exists()


COPY_EACH_MOMENT = """
import shutil, sys, test_checkpoint
folder, number = sys.argv[1], 0
def copy(event, _):
    global number
    if event in ("open", "os.rename", "os.remove", "os.mkdir", "os.rmdir") and number:
        moment, number = number, 0  # the copy makes such calls, too
        shutil.copytree(folder, f"{folder}-{moment:03}")
        number = moment + 1
test_checkpoint.write(f"{folder}/m", 1)
sys.addaudithook(copy)
number = 1
test_checkpoint.write(f"{folder}/m", 2)
"""


def run_python(program, *arguments):
    """Run a program that imports what these tests import."""
    paths = os.pathsep.join([*sys.path, str(Path(__file__).parent)])
    command = [sys.executable, "-c", program, *map(str, arguments)]
    env = {**os.environ, "PYTHONPATH": paths}
    return subprocess.run(command, env=env, text=True, capture_output=True, timeout=100)


def assert_whole(prefix):
    """Assert that every checkpoint can be read; their epochs."""
    entries = checkpoint.find(str(prefix))
    for entry in entries:
        checkpoint.read(entry.name, entry.manifest)
    return [entry.epoch for entry in entries]


def test_a_kill_at_any_moment_leaves_the_checkpoint_before_or_the_new_one(tmp_path):
    """The folder is copied before each call that changes it: what a kill there leaves."""
    (tmp_path / "now").mkdir()
    done = run_python(COPY_EACH_MOMENT, tmp_path / "now")
    assert done.returncode == 0, done.stderr
    found = []
    for folder in sorted(tmp_path.glob("now-*")):
        found.append(assert_whole(folder / "m"))
        with hold(folder / "m"):  # the next start tidies up
            pass
        assert not list(folder.glob(".*"))
    assert len(found) > 15 and found == sorted(found)
    assert [epochs for n, epochs in enumerate(found) if epochs not in found[:n]] == [[1], [2, 1]]


def all_optimizers():
    """List MXNet's, but one for its tests, one that adds noise, and one for embeddings only."""
    return sorted(set(mx.optimizer.Optimizer.opt_registry) - {"test", "sgld", "groupadagrad"})


def steps(net, trainer, first, last):
    for step in range(first, last):
        data = [
            mx.nd.random.uniform(shape=(4, 3), ctx=c) * 0 + step + 1 for c in net.weight.list_ctx()
        ]
        with mx.autograd.record():
            losses = [(net(x) ** 2).sum() for x in data]
        mx.autograd.backward(losses)
        trainer.step(8)


def make(optimizer, num_devices):
    ctx = [mx.cpu(i) for i in range(num_devices)]
    mx.random.seed(1)
    with mx.name.NameManager():
        net = nn.Dense(2, in_units=3)
    net.initialize(mx.init.Normal(0.1), ctx=ctx)
    options = {"learning_rate": 0.01}
    if optimizer in ("sgd", "nag", "signum", "lars", "lbsgd", "ccsgd"):
        options["momentum"] = 0.9
    params, optimizer = net.collect_params(), mx.optimizer.create(optimizer, **options)
    store = mx.kv.create("device") if num_devices > 1 else None
    trainer = ExplicitTrainer(params, optimizer, store, store and Buckets())
    return net, trainer


@pytest.mark.parametrize("num_devices", [1, 2])
@pytest.mark.parametrize("optimizer", all_optimizers())
def test_an_optimizer_goes_on_where_it_was(tmp_path, optimizer, num_devices):
    if optimizer == "nadam" and num_devices > 1:
        pytest.xfail("MXNet's Nadam counts the updates of all devices together, and they differ")
    net, trainer = make(optimizer, num_devices)
    steps(net, trainer, 0, 3)
    facts, arrays = trainer.collect_state()
    other, resumed = make(optimizer, num_devices)
    for ours, theirs in zip(net.collect_params().values(), other.collect_params().values()):
        theirs.set_data(ours.data().copy())
    arrays = {name: value.asnumpy() for name, value in arrays.items()}
    other.bias.grad_req = "null"  # frozen at first, and thawed later
    resumed.restore_state(json.loads(json.dumps(facts)), arrays)
    other.bias.grad_req = "write"
    steps(net, trainer, 3, 6)
    steps(other, resumed, 3, 6)
    for ours, theirs in zip(net.collect_params().values(), other.collect_params().values()):
        for x, y in zip(ours.list_data(), theirs.list_data()):
            assert x.asnumpy().tobytes() == y.asnumpy().tobytes()


def test_the_loss_scale_of_float16_goes_on(tmp_path):
    """Without a GPU, where float16 trains: its scaler alone."""
    trainer, resumed = make("sgd", 1)[1], make("sgd", 1)[1]
    trainer._amp_loss_scaler, resumed._amp_loss_scaler = LossScaler(), LossScaler()
    vars(trainer._amp_loss_scaler).update(_loss_scale=8.0, _next_loss_scale=4.0, _unskipped=17)
    facts, _ = trainer.collect_state()
    resumed.restore_state(json.loads(json.dumps(facts)), {})
    assert vars(resumed._amp_loss_scaler) == vars(trainer._amp_loss_scaler)


def has_tmpfs():
    return sys.platform.startswith("linux") and os.geteuid() == 0


@pytest.fixture
def small_disk(tmp_path):
    folder = tmp_path / "disk"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=400k", "none", str(folder)], check=True)
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.long
@pytest.mark.skipif(not has_tmpfs(), reason="needs root on Linux to mount a small disk")
def test_a_full_disk_is_told_and_the_checkpoint_before_stays(small_disk, tmp_path):
    (small_disk / "filler").write_bytes(bytes(250_000))
    job = finished(training(tmp_path, small_disk / "model"), status=1)
    lines = [line for line in job.text().splitlines() if "could not be saved" in line]
    assert "No space left on device; the newest checkpoint is" in lines[-1], job.text()
    assert "Epoch 3: Test_acc" in job.text()  # the training went on
    entries = checkpoint.find(str(small_disk / "model"))
    assert entries and len(lines) == 4 - len(entries)
    assert_whole(small_disk / "model")
    files = {path.name for path in small_disk.iterdir()} - {"filler", "model-symbol.json"}
    assert len(files) == 3 * len(entries), files
    (small_disk / "filler").unlink()
    again = finished(training(tmp_path, small_disk / "model", "--resume", "auto"))
    assert f"Resumed from {entries[0].name}" in again.text()


FILL = """
import gluon_dist, mxnet as mx, os, sys
from pathlib import Path
from gluon_dist.checkpoint import files as checkpoint
from gluon_dist.checkpoint.manifest import Manifest
arrays, disk = {str(i): mx.nd.ones(9000) for i in range(4)}, Path(sys.argv[1])
params = {"arg:w": arrays["0"]}
for kilobytes in range(200, 400, 4):
    [path.unlink() for path in disk.iterdir()]
    (disk / "filler").write_bytes(bytes(1024 * kilobytes))
    try:
        checkpoint.write(str(disk / "m"), Manifest(1), "{}", params, arrays)
    except (OSError, mx.MXNetError, ValueError):
        print("failed", *(path.name for path in disk.iterdir()))
"""


@pytest.mark.long
@pytest.mark.skipif(not has_tmpfs(), reason="needs root on Linux to mount a small disk")
def test_a_disk_that_is_full_at_any_byte_gives_one_error_and_nothing_else(small_disk):
    done = run_python(FILL, small_disk)
    assert (done.returncode, done.stderr) == (0, "") and done.stdout.count("failed") > 20
    assert "m-0001" not in done.stdout


def test_what_json_cannot_hold_is_not_written(tmp_path):
    with pytest.raises(ValueError, match="not JSON compliant"):
        manifest = Manifest(1, program={"lr": math.nan})
        checkpoint.write(str(tmp_path / "m"), manifest, "{}", {"arg:w": mx.nd.ones(1)}, {})
    assert not list(tmp_path.iterdir())


@pytest.mark.long
def test_an_interrupt_lets_the_checkpoint_be_written_to_its_end(tmp_path):
    """Ctrl-C, just after the line of an epoch's accuracy."""
    words = "--data synthetic --num-examples 64 --batch-size 64 --num-epochs 9 --model-prefix"
    process = subprocess.Popen(
        [*TRAIN, *words.split(), tmp_path / "model"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        # In the background of a shell script, as these tests may be, it would be ignored.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    end = time.monotonic() + 200
    while not (tmp_path / ".model.saving").is_dir() and time.monotonic() < end:
        time.sleep(0.001)
    process.send_signal(signal.SIGINT)
    assert "cifar10_dist.py: interrupted" in process.communicate(timeout=60)[1].decode()
    assert process.returncode == 130 and assert_whole(tmp_path / "model")
    assert not list(tmp_path.glob(".model.saving"))
