"""Checkpoints outlive changes of the program: one that commit fc950eb made goes on."""

import shutil
from pathlib import Path

import mxnet as mx
import numpy as np

from restarting import finished, params, training

TIME_BUDGET_S = 15
SAVED = Path(__file__).parent / "of_an_earlier_version"  # train_tiny.py with restarting.OPTIONS
CLOSE = 0.01  # a processor without AVX-512 rounds otherwise and ends 4e-4 away


def test_a_checkpoint_of_an_earlier_version_goes_on_to_where_that_version_ended(tmp_path):
    for path in SAVED.glob("model-*"):
        shutil.copy(path, tmp_path)
    job = finished(training(tmp_path, tmp_path / "model", "--resume", "auto"))
    assert f"Resumed from {tmp_path}/model-0002: 2 epochs done" in job.stdout, job.text()
    assert "not as saved" not in job.stderr
    end = mx.nd.load(str(SAVED / "end.params"))
    found = params(tmp_path / "model")
    assert found.keys() == end.keys() and end
    for name, array in end.items():
        np.testing.assert_allclose(found[name], array.asnumpy(), atol=CLOSE, err_msg=name)


def test_the_training_before_its_checkpoint_counts(tmp_path):
    """Without it the same command ends elsewhere: the test above can fail."""
    finished(training(tmp_path, tmp_path / "model", "--num-epochs", "2"))
    end = mx.nd.load(str(SAVED / "end.params"))
    found = params(tmp_path / "model", "0002")
    assert any(
        np.abs(found[name] - array.asnumpy()).max() > 10 * CLOSE for name, array in end.items()
    )
