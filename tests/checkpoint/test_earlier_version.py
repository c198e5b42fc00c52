"""Checkpoints of an earlier version (commit 40a8228) can be resumed."""

import shutil
from pathlib import Path

from gluon_dist.checkpoint.manifest import Manifest

import mxnet as mx
import numpy as np
import pytest

from restarting import params, train_here
from run.resume import SEEDED, Start

TIME_BUDGET_S = 25
SAVED = Path(__file__).parent / "of_an_earlier_version"  # train_tiny.py with restarting.OPTIONS
CLOSE = 0.001  # a processor without AVX-512 rounds otherwise and ends up to 4e-4 away
OTHER_DRAWS = "saved within an epoch by an older version, which drew random numbers"


@pytest.fixture
def plain(monkeypatch):
    """Train without dropout."""
    monkeypatch.setenv("TINY", "plain")


def go_on(folder, kind):
    """Go on from two steps into the second epoch."""
    for path in SAVED.glob(f"{kind}/model-*"):
        shutil.copy(path, folder)
    said = train_here(folder / "model", "--resume", "auto")
    name = f"{folder}/model-0001-00002"
    assert f"Resumed from {name}: 1 epoch and 2 steps done" in said
    assert "not as saved" not in said
    return said


def farthest(found):
    """The largest difference from where that version ended."""
    end = mx.nd.load(str(SAVED / "plain" / "end.params"))
    assert found.keys() == end.keys() and end
    return max(np.abs(found[name] - array.asnumpy()).max() for name, array in end.items())


def test_a_checkpoint_of_an_earlier_version_goes_on_to_where_that_version_ended(tmp_path, plain):
    said = go_on(tmp_path, "plain")
    assert farthest(params(tmp_path / "model")) < CLOSE and OTHER_DRAWS not in said


def test_a_training_that_begins_afresh_for_the_epochs_that_were_left_ends_elsewhere(
    tmp_path, plain
):
    """So the test above can fail."""
    train_here(tmp_path / "model", "--num-epochs", "3")
    assert farthest(params(tmp_path / "model", "0003")) > 2 * CLOSE


def test_a_training_with_dropout_tells_that_it_draws_other_numbers_than_that_version(tmp_path):
    assert OTHER_DRAWS in go_on(tmp_path, "dropout")


@pytest.mark.parametrize(("optimizer", "draws_others"), [("adam", True), ("SGLD", False)])
def test_sgld_draws_as_in_that_version_which_seeded_it_in_every_step(optimizer, draws_others):
    manifest = Manifest(1, 2, program={"options": {"--optimizer": optimizer}})
    assert Start({}, 1, 2, manifest=manifest).is_seeded_otherwise == draws_others
    manifest.program["seeded"] = SEEDED
    assert not Start({}, 1, 2, manifest=manifest).is_seeded_otherwise
