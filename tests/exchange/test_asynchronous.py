"""dist_async learns with the program's settings, and reports the staleness of gradients."""

import json
import math
import pickle

from gluon_dist.exchange.asynchronous import AsyncTrainer

import mxnet as mx
import numpy as np
import pytest

from launching import TRAIN, accuracies, launch
from restarting import finished, training
from run.staleness import allow_for_staleness

TIME_BUDGET_S = 75
ABC = {"a": 1, "b": 64, "c": 0}  # names, and multiples of the learning rate
SMALL = ("--data", "synthetic", "--network", "resnet", "--num-layers", "8")
ASYNC = (*SMALL, "--kv-store", "dist_async", "--num-examples", "2400", "--batch-size", "50")


@pytest.fixture(scope="module")
def three_workers(tmp_path_factory):
    """A job of three epochs with the usual settings: its output, and its ``metrics.jsonl``."""
    folder = tmp_path_factory.mktemp("job")
    usual = ("--optimizer", "sgd", "--lr", "0.1", "--mom", "0.9", "--log-dir", str(folder))
    job = launch(folder, "-n", 3, "-s", 1, *TRAIN, *ASYNC, *usual, "--num-epochs", "3")
    assert job.status == 0, job.stdout + job.stderr
    rows = (folder / "metrics.jsonl").read_text().splitlines()
    return job.stdout, [json.loads(row) for row in rows]


@pytest.mark.long
def test_three_late_workers_learn_where_the_usual_settings_are_given(three_workers):
    stdout, _ = three_workers
    printed = accuracies(stdout)
    assert [len(set(values)) for values in printed] == [1, 1, 1]  # evaluated alike
    assert printed[-1][0] > 0.6
    assert "dist_async: momentum 0.7 instead of 0.9, as the gradients of 3 workers" in stdout


@pytest.mark.long
def test_each_epoch_tells_how_late_the_gradients_of_all_workers_were(three_workers):
    stdout, rows = three_workers
    assert len(rows) == stdout.count("updates by other workers on average") == 3
    for row in rows:
        # Each worker takes 16 steps an epoch. The two other workers take two meanwhile, on average,
        # and at most all their 32.
        assert 1 < row["staleness_mean"] <= 2
        assert row["staleness_mean"] <= row["staleness_max"] <= 32


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


def test_rates_of_single_weights_reach_the_servers():
    params = [mx.gluon.Parameter(name, shape=(2,), lr_mult=lr) for name, lr in ABC.items()]
    params[1].wd_mult = 0.5
    for param in params:
        param.initialize()
    inner = mx.optimizer.SGD(learning_rate=0.1, wd=0.01)
    trainer = AsyncTrainer(params, inner, None, mx.kv.create("local"))
    trainer._connect()  # as the first step does
    sent = pickle.loads(pickle.dumps(trainer.optimizer)).inner  # as the store does
    update, moved, decayed = mx.optimizer.get_updater(sent), mx.nd.zeros(3), mx.nd.ones(3)
    for index in range(3):
        update(index, mx.nd.ones(1), moved[index : index + 1])
        update(index, mx.nd.zeros(1), decayed[index : index + 1])
    np.testing.assert_allclose(moved.asnumpy(), [-0.1, -6.4, 0], rtol=1e-6)
    np.testing.assert_allclose(decayed.asnumpy(), [1 - 0.1 * 0.01, 1 - 6.4 * 0.005, 1], rtol=1e-6)


def test_an_optimizer_without_momentum_gets_a_lower_rate():
    assert allow_for_staleness(0.001, None, 4) == (0.001 / math.sqrt(4), None)


@pytest.mark.long
def test_a_long_training_needs_no_more_keys_than_a_short_one(tmp_path):
    long = ("--kv-store", "dist_async", "--num-epochs", "20", "--save-period", "20")
    finished(training(tmp_path, tmp_path / "m", *long, workers=2, env={"TINY_KEYS": "80"}))
