"""Which checkpoint is resumed: by the options, by damage, by what fits."""

import shutil
from dataclasses import replace

from gluon_dist.checkpoint import files as checkpoint

import mxnet as mx
import pytest

from restarting import assert_same, finished, state, train_here, training

TIME_BUDGET_S = 40
pytestmark = pytest.mark.long
SHORT = ("--num-epochs", "2", "--lr-schedule", "constant")


@pytest.fixture(scope="module")
def two_epochs(tmp_path_factory):
    """A folder with the checkpoints of two epochs."""
    folder = tmp_path_factory.mktemp("two")
    train_here(folder / "model", *SHORT)
    return folder


@pytest.fixture
def saved(two_epochs, tmp_path):
    """A copy of it."""
    for path in two_epochs.glob("model*"):
        shutil.copy(path, tmp_path)
    return tmp_path


def go_on(folder, *options, status=0):
    three = ("--num-epochs", "3", "--lr-schedule", "constant")
    return train_here(folder / "model", *three, *options, status=status)


def test_a_broken_checkpoint_is_named_and_the_one_before_is_used(saved):
    path = saved / "model-0002.params"
    path.write_bytes(path.read_bytes()[:-20])
    said = go_on(saved, "--resume", "auto")
    (line,) = [line for line in said.splitlines() if "trying the one before it" in line]
    assert "model-0002.params: cut short" in line
    assert "Resumed from" in said and "model-0001: 1 epoch done" in said
    assert "Epoch 2: Test_acc" in said


def test_without_a_usable_checkpoint_one_line_says_so(saved):
    for epoch in (1, 2):
        (saved / f"model-000{epoch}.params").write_bytes(b"foreign")
    said = go_on(saved, "--resume", "auto", status=2)
    assert "error:" in said and "nor can any of the 1 newer" in said
    assert len(said.strip().splitlines()) == 2


def test_auto_without_any_checkpoint_starts_afresh(tmp_path):
    said = go_on(tmp_path, "--resume", "auto")
    assert "Epoch 0: Test_acc" in said


@pytest.mark.parametrize(
    "options",
    [
        ("--load-epoch", "1"),
        ("--resume", "{}/model-0001"),
        ("--resume", "{}/model-0001.params"),
    ],
)
def test_a_checkpoint_can_be_pointed_to(saved, options):
    said = go_on(saved, *(option.format(saved) for option in options))
    assert f"Resumed from {saved}/model-0001: 1 epoch done" in said
    assert "Epoch 0:" not in said and "Epoch 1: Test_acc" in said


def test_a_prefix_stands_for_its_newest_checkpoint(saved, tmp_path):
    said = train_here(tmp_path / "other", "--num-epochs", "3", "--resume", saved / "model")
    assert f"Resumed from {saved}/model-0002" in said
    assert "not as saved: --lr-schedule cosine (was constant)" in said


def test_what_is_not_there_is_said_with_the_host(saved):
    said = go_on(saved, "--load-epoch", "7", "--num-epochs", "9", status=2)
    assert f"there is no {saved}/model-0007.params on " in said


@pytest.mark.parametrize("how", ["--load-epoch 1", "--resume auto", "--resume {}/model"])
def test_parameters_without_a_manifest_are_not_taken_and_one_line_says_what_to_do(saved, how):
    for path in (*saved.glob("model-0*.json"), *saved.glob("model-0*.state")):
        path.unlink()
    said = go_on(saved, *how.format(saved).split(), status=2)
    (line,) = [line for line in said.splitlines() if "warning" not in line]
    name = f"{saved}/model-000{1 if '1' in how else 2}"
    assert f"error: {name}.params has no manifest" in line
    assert f"convert it: python tools/convert_module.py {name}.params --model-prefix" in line


def test_a_job_that_was_killed_while_it_saved_the_first_time_starts_afresh(saved):
    for path in (*saved.glob("model-0*.json"), saved / "model-0002.params"):
        path.unlink()
    assert "Epoch 0: Test_acc" in go_on(saved, "--resume", "auto")


def test_parameters_that_cannot_be_read_are_told(saved):
    (saved / "model-0001.params").unlink()
    (saved / "model-0001.params").mkdir()
    said = go_on(saved, "--load-epoch", "1", status=2)
    assert "model-0001.params: Is a directory" in said


def test_another_end_is_told_where_the_learning_rate_falls_towards_it(saved, tmp_path):
    assert "--num-epochs 3 (was 2)" not in go_on(saved, "--resume", "auto")
    (tmp_path / "cosine").mkdir()
    cosine = ("--lr-schedule", "cosine")
    model = tmp_path / "cosine" / "model"
    train_here(model, *SHORT, *cosine)
    again = train_here(model, "--num-epochs", "3", *cosine, "--resume", "auto")
    assert "not as saved: --num-epochs 3 (was 2)" in again


def test_a_training_without_momentum_goes_on_with_one(tmp_path):
    sgd = ("--optimizer", "sgd", "--lr", "0.01", "--mom")
    train_here(tmp_path / "model", *SHORT, *sgd, "0")
    said = go_on(tmp_path, "--resume", "auto", *sgd, "0.9")
    assert "model-0002: 2 epochs done" in said and "Epoch 2: Test_acc" in said


def test_the_parameters_of_another_network_are_foreign(saved, monkeypatch):
    monkeypatch.setenv("TINY", "plain")
    said = go_on(saved, "--resume", "auto", status=2)
    assert "not the parameters of this network" in said


def test_a_finished_training_has_nothing_left_to_do(saved, two_epochs):
    said = train_here(saved / "model", *SHORT, "--resume", "auto")
    assert "Epoch 1: nothing is left to train" in said
    assert_same(saved / "model", two_epochs / "model", "0002")


def test_a_training_that_had_reached_its_target_is_not_gone_on_with(tmp_path):
    target = ("--target-accuracy", "0.01")
    assert "reached --target-accuracy" in go_on(tmp_path, *target)
    assert "nothing is left to train" in go_on(tmp_path, *target, "--resume", "auto")


def test_under_max_restarts_a_training_goes_on_by_itself(saved):
    job = training(saved, saved / "model", *SHORT, workers=1, launch=("--max-restarts", "1"))
    assert "nothing is left to train" in finished(job).text()


def test_files_of_another_worker_are_found_and_named(saved):
    """Worker 0 looks where nothing is; worker 1 has the checkpoints."""
    prefix = f"{saved}/$(test $LAUNCH_WORKER_ID = 1 || echo nowhere-)model"
    job = training(saved, prefix, "--resume", "auto", workers=2, through_shell=True)
    said = finished(job, 2).text()
    assert f"worker 0 has no {saved}/nowhere-model-*.json on " in said
    assert f"worker 1 has {saved}/model-0002 on " in said
    assert "or let worker 0 run where they are (--resume none starts afresh)" in said


def test_an_epoch_that_was_begun_with_another_batch_is_begun_again(saved):
    prefix, manifest = str(saved / "model"), checkpoint.find(str(saved / "model"))[0].manifest
    arrays = {name: mx.nd.array(array) for name, array in state(prefix, "0002").items()}
    program = {**manifest.program, "global_batch_size": 7}
    begun = replace(manifest, step=3, worker_steps=[3], program=program)
    symbol, values = (saved / "model-symbol.json").read_text(), mx.nd.load(f"{prefix}-0002.params")
    checkpoint.write(prefix, begun, symbol, values, arrays)
    said = go_on(saved, "--resume", "auto")
    assert "inside an epoch, with global batch size 7, which is 48 here" in said
    assert "model-0002: 2 epochs done" in said


def test_a_new_training_says_that_it_replaces_the_checkpoints_of_another(saved):
    said = go_on(saved)
    assert "are replaced by those of a new training; --resume auto would go on" in said


@pytest.mark.parametrize("wanted", ["autoo", "other/model"])
def test_a_path_to_resume_from_that_is_not_there_changes_nothing(saved, wanted):
    before = {path.name: path.read_bytes() for path in saved.glob("model*")}
    for prefix in (saved / "model", None):
        said = train_here(prefix, "--resume", saved / wanted, status=2)
        (line,) = [line for line in said.splitlines() if "warning" not in line]
        assert f"error: there is no {saved / wanted}-*.json on " in line
    assert {path.name: path.read_bytes() for path in saved.glob("model*")} == before
