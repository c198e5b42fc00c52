"""The next step begins while gradients are sent: what may wait for what."""

import sys
import threading

from gluon_dist.exchange import optimizers
from gluon_dist.exchange.buckets import wait_for
from gluon_dist.workers.workers import Workers

import mxnet as mx
import numpy as np
import pytest
from mxnet.gluon import nn

from command_line.parse import parse_args
from launching import launch
from run.trainer import create_trainer

TIME_BUDGET_S = 30
SHAPE = (16, 8)
GATE, KEPT_SHUT = threading.Event(), []


@mx.operator.register("gate")
class _Gate(mx.operator.CustomOpProp):
    """An operator that hands its input on when GATE opens."""

    def create_operator(self, *_):
        class Operator(mx.operator.CustomOp):
            def forward(self, is_train, req, in_data, out_data, aux):
                if not GATE.wait(20):
                    KEPT_SHUT.append(True)
                self.assign(out_data[0], req[0], in_data[0])

        return Operator()


@pytest.fixture
def gate():
    GATE.clear()
    KEPT_SHUT.clear()
    yield GATE
    GATE.set()
    mx.nd.waitall()
    assert not KEPT_SHUT, "something waited for the gate that should not"


def arrays(ctx):
    rng = np.random.RandomState(0)
    return [mx.nd.array(rng.randn(*SHAPE), ctx) for _ in range(2)]


def convolve():
    """Do what reserves each of MXNet's four working memories."""
    for _ in range(8):
        images, weights = mx.nd.ones((2, 3, 8, 8)), mx.nd.ones((4, 3, 3, 3))
        mx.nd.Convolution(images, weights, no_bias=True, kernel=(3, 3), num_filter=4).asnumpy()


@pytest.mark.parametrize(
    "kind, options",
    [
        ("Adam", {}),
        ("Adam", {"rescale_grad": 1 / 1024}),  # as gradients in float16 need it
        ("NAG", {"momentum": 0.9, "wd": 0.1}),
    ],
)
def test_a_convolution_does_not_wait_for_updates(gate, kind, options):
    optimizer = getattr(optimizers, kind)(**options)
    weight, grad = arrays(mx.cpu())
    before = weight.asnumpy()
    state = optimizer.create_state(0, weight)
    late = mx.nd.Custom(grad, op_type="gate")
    for _ in range(8):
        optimizer.update_multi_precision(0, weight, late, state)
    convolve()
    gate.set()
    assert (weight.asnumpy() != before).all()


@pytest.mark.parametrize("ctx", [mx.cpu(), mx.cpu(1)], ids=str)
@pytest.mark.parametrize("options", [{}, {"wd": 0.1}, {"clip_gradient": 0.3}], ids=str)
@pytest.mark.parametrize("rescale", [1, 0.5])
def test_adam_is_mxnets(ctx, options, rescale):
    found = []
    for kind in (mx.optimizer.Adam, optimizers.Adam):
        optimizer = kind(learning_rate=0.01, **options)
        optimizer.rescale_grad = rescale
        weight, grad = arrays(ctx)
        state = optimizer.create_state(0, weight)
        for step in range(5):
            optimizer.update(0, weight, grad * (step - 1.5), state)
        found.append([a.asnumpy() for a in (weight, *state)])
    for theirs, ours in zip(*found):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-7)


def test_the_program_trains_with_these_optimizers():
    net = nn.Dense(2, in_units=3)
    net.initialize()
    store = mx.kv.create("local")
    for name, kind in (("Adam", optimizers.Adam), ("nag", optimizers.NAG)):
        args = parse_args(["--optimizer", name, "--lr", "0.5"])
        trainer = create_trainer(args, net, Workers(store), steps_per_epoch=1)
        assert type(trainer.optimizer) is kind and trainer.learning_rate == 0.5


def test_an_array_lets_another_pass_and_keeps_its_values(gate):
    first, second = (x.reshape((-1,)) for x in arrays(mx.cpu()))
    first[:] = np.nan
    values = second.asnumpy()
    late = mx.nd.Custom(first, op_type="gate")
    wait_for(late, second)
    reader = threading.Thread(target=second.wait_to_read)
    reader.start()
    reader.join(0.5)
    assert reader.is_alive()
    gate.set()
    reader.join(30)
    np.testing.assert_array_equal(second.asnumpy(), values)


MORE = [(1, ()), (3, ()), (2, ("--p3",))]


@pytest.mark.parametrize(
    "workers, options",
    [(2, ()), *(pytest.param(*values, marks=pytest.mark.long) for values in MORE)],
)
def test_buckets_in_any_order_add_up_to_the_same_weights(workers, options, tmp_path):
    job = launch(
        tmp_path, "-n", workers, *options, sys.executable, "tests/programs/many_buckets.py"
    )
    assert job.status == 0, job.stderr
    assert job.stdout.count("equal") == workers, job.stdout
