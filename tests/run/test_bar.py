"""The bar of an epoch: its number is that of the printed lines, its rate that of the computing."""

import time

from gluon_dist import contract

import pytest

from gluon_launch.telling import progress as launcher
from run.progress import QUEUED, Progress

TIME_BUDGET_S = 10
PAUSE_S = 0.1


@pytest.fixture
def bars(monkeypatch, capsys):
    """The bars of an epoch of ten batches of 64, the fourth of five epochs, as a launcher reads."""
    monkeypatch.setenv(contract.PROGRESS, "1")
    progress = Progress(0, 10, disp_batches=10, num_epochs=5)
    progress.epoch_started(3)
    for step in range(1, 11):
        time.sleep(PAUSE_S * (step > QUEUED))  # the first are only asked for
        progress.batch_done(3, step, [], [range(32), range(32)])
        if progress._bar is not None:
            progress._bar.refresh()
    progress.trained()
    progress.epoch_done(3, {"accuracy": 0.5, "loss": 1.0}, 0.1)
    printed = capsys.readouterr()
    assert printed.out.endswith("Epoch 3: Test_acc 0.500000\n")
    found = [launcher.BAR.match(text.strip()) for text in printed.err.split("\r")]
    return [match.groupdict() for match in found if match]


def test_the_number_of_the_bar_agrees_with_the_printed_lines(bars):
    assert {bar["what"] for bar in bars} == {"Epoch 3 (4 of 5)", "Epoch 3 (4 of 5), testing"}
    assert bars[0]["done"] == "0/10" and bars[-1]["what"].endswith("testing")
    steps = [int(bar["done"].split("/")[0]) for bar in bars]
    assert steps == sorted(steps) and steps[-1] == 10


def test_the_rate_counts_samples_from_the_first_step_that_was_computed(bars):
    rates = [launcher.per_second(bar["rate"]) for bar in bars if bar["rate"]]
    assert {unit for _, unit in rates} == {launcher.SAMPLES}
    assert all(0.5 * 64 / PAUSE_S < rate <= 64 / PAUSE_S for rate, _ in rates)
