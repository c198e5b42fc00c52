"""MXNet's optimizers, and ours that stand in for them."""

from gluon_dist.exchange.optimizers import Adamax
from gluon_dist.workers.workers import Workers

import mxnet as mx
import numpy as np
import pytest

from command_line.flags import OPTIMIZERS
from command_line.parse import parse_args
from restarting import finished, training
from run.optimizer import OptimizerOptions, choose_optimizer

TIME_BUDGET_S = 30


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_weights_without_a_gradient_stay_finite(name):
    """A ReLU that never fires leaves the weights before it without one."""
    args = parse_args(["--optimizer", name, "--mom", "0"])
    workers = Workers(mx.kv.create("local"))
    kind, arguments = choose_optimizer(OptimizerOptions.of(args), workers)
    update = mx.optimizer.get_updater(kind(**arguments))
    weight, grad = mx.nd.array([[1, 2], [3, 0]]), mx.nd.array([[0, 1], [-1, 0]])
    for _ in range(8):
        update(0, grad.copy(), weight)
    assert np.isfinite(weight.asnumpy()).all()


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_an_optimizer_that_has_a_momentum_gets_it(name):
    args = parse_args(["--optimizer", name, "--mom", "0"])
    kind, arguments = choose_optimizer(OptimizerOptions.of(args), Workers(mx.kv.create("local")))
    assert ("momentum" in arguments) == hasattr(kind(), "momentum")


def test_where_there_are_gradients_adamax_is_mxnets():
    found = []
    for kind in (mx.optimizer.Adamax, Adamax):
        update = mx.optimizer.get_updater(kind(learning_rate=0.01, wd=0.1))
        weight, grad = mx.nd.array([1, 2, 3, 0]), mx.nd.array([0.1, 1e-6, -1, 10])
        for step in range(8):
            update(0, grad * (step - 2.5), weight)
        found.append(weight.asnumpy())
    assert (found[0] == found[1]).all() and np.isfinite(found[0]).all()


@pytest.mark.long
def test_servers_that_update_have_our_adamax(tmp_path):
    options = ("--optimizer", "adamax", "--kv-store", "dist_async")
    finished(training(tmp_path, tmp_path / "m", *options, workers=2))
