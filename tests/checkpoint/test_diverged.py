"""A training whose numbers are no longer finite says so, ends, and saves nothing of it."""

import re

import pytest

from restarting import finished, training
from run.progress import Progress

TIME_BUDGET_S = 60


@pytest.mark.long
@pytest.mark.parametrize("workers, lines", [(0, "1"), (0, "99"), (2, "99")])
def test_a_training_that_diverges_says_so_in_one_line_and_saves_nothing(workers, lines, tmp_path):
    options = ("--optimizer", "sgd", "--lr", "1e30", "--disp-batches", lines)
    job = finished(training(tmp_path, tmp_path / "m", *options, workers=workers), status=1)
    first = job.stderr.splitlines()[0]
    assert re.search(r": \w+ is not finite: the training has diverged and is not saved", first)
    assert "Test_acc" not in job.stdout and "Traceback" not in job.text()
    assert not list(tmp_path.glob("m*"))


def test_a_loss_that_is_not_finite_is_told(tmp_path, capsys):
    progress = Progress(0, 1)
    progress.epoch_started(0)
    progress.epoch_done(0, {"accuracy": 0.1, "loss": float("nan")}, 0.1)
    assert "Epoch 0: the test loss is not finite" in capsys.readouterr().err
