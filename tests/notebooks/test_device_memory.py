"""The bytes that notebook 02 counts, against a network that is counted by hand."""

import mxnet as mx
import pytest
from device_memory import count_bytes, output_bytes
from mxnet import autograd, gluon

TIME_BUDGET_S = 10
CTX = [mx.cpu(0), mx.cpu(1)]


@pytest.fixture
def net():
    """12 + 4 weights and 9 outputs an example: 4 before tanh, 4 after it, and the last."""
    net = gluon.nn.HybridSequential()
    net.add(gluon.nn.Dense(4, activation="tanh", use_bias=False, in_units=3))
    net.add(gluon.nn.Dense(1, use_bias=False, in_units=4))
    net.initialize(ctx=CTX)
    return net


@pytest.mark.parametrize("optimizer, states", [("sgd", 0), ("nag", 1), ("adam", 2)])
def test_each_device_keeps_weights_gradients_and_state(net, optimizer, states):
    options = {"momentum": 0.9} if optimizer == "nag" else {}
    trainer = gluon.Trainer(net.collect_params(), optimizer, options, update_on_kvstore=False)
    with autograd.record():
        outputs = [net(mx.nd.ones((2, 3), ctx)) for ctx in CTX]
    autograd.backward(outputs)
    trainer.step(4)
    each = {"cpu(0)": 4 * 16, "cpu(1)": 4 * 16}
    state = {place: states * n for place, n in each.items()} if states else {}
    assert count_bytes(net, trainer) == {"weights": each, "gradients": each, "state": state}


def test_outputs_grow_with_the_batch(net):
    assert [output_bytes(net, (n, 3)) for n in (1, 2)] == [4 * 9, 8 * 9]
