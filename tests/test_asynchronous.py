"""dist_async learns with what the program chooses, and tells how late its gradients are."""

import json
import math

import pytest
from asynchronous import allow_for_staleness
from running import accuracies, train_with

TIME_BUDGET_S = 75
SMALL = ("--data", "synthetic", "--network", "resnet", "--num-layers", "8")
ASYNC = (*SMALL, "--kv-store", "dist_async", "--num-examples", "2400", "--batch-size", "50")


def test_three_late_workers_learn_where_the_usual_settings_are_given(tmp_path):
    usual = ("--optimizer", "sgd", "--lr", "0.1", "--mom", "0.9", "--log-dir", str(tmp_path))
    job = train_with(3, *ASYNC, *usual, "--num-epochs", "3", servers=1)
    assert job.returncode == 0, job.stdout + job.stderr
    printed = accuracies(job.stdout)
    assert [len(set(values)) for values in printed] == [1, 1, 1]  # evaluated alike
    assert printed[-1][0] > 0.6
    assert "dist_async: momentum 0.7 instead of 0.9, as the gradients of 3 workers" in job.stdout

    rows = [json.loads(row) for row in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    for row in rows:
        # In 48 steps of three workers a step meets most of the two others' steps, and none meets
        # more than all 32 of the others.
        assert 1 < row["staleness_mean"] <= 2
        assert row["staleness_mean"] <= row["staleness_max"] <= 32
    assert job.stdout.count("updates by other workers on average") == 3


@pytest.mark.parametrize(
    "given, workers, chosen",
    [
        ((0.1, 0.9), 1, (0.1, 0.9)),
        ((0.1, 0.9), 4, (0.1, 0.6)),
        ((0.1, 0.9), 20, (0.05, 0.0)),
        ((0.1, 0.0), 4, (0.025, 0.0)),
    ],
)
def test_the_long_run_effect_of_a_gradient_is_divided_by_the_workers(given, workers, chosen):
    lr, momentum = allow_for_staleness(*given, workers)
    assert (lr, momentum) == pytest.approx(chosen)
    assert lr / (1 - momentum) == pytest.approx(given[0] / (1 - given[1]) / workers)


def test_an_optimizer_without_momentum_gets_a_lower_rate():
    assert allow_for_staleness(0.001, None, 4) == (0.001 / math.sqrt(4), None)
