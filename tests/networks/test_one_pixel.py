"""Convolutions computed as products of matrices: the same outputs, gradients and files."""

import mxnet as mx
import numpy as np
import pytest
from mxnet import autograd
from mxnet.gluon import nn

from launching import PROGRAMS, launch
from networks.by_name import get_network, network_json
from networks.one_pixel import as_convolutions, use_products
from processors import needs_avx512

TIME_BUDGET_S = 60
SHAPE = (3, 32, 32)


def products(net):
    """How many layers are computed as products."""
    blocks = []
    net.apply(blocks.append)
    return sum("hybrid_forward" in vars(block) for block in blocks)


def outcome(net, data):
    """Outputs, gradients and moved statistics of a step, and outputs of tests after it."""
    with autograd.record():
        out = net(data)
    out.backward(mx.nd.array(np.random.RandomState(1).normal(size=out.shape)))
    mx.nd.waitall()
    found = {"output": out.asnumpy(), "test": net(data).asnumpy(), "images": data.grad.asnumpy()}
    found.update({"again": net(data).asnumpy(), "fewer": net(data[:3]).asnumpy()})
    for name, param in net.collect_params().items():
        found[name] = (param.data() if param.grad_req == "null" else param.grad()).asnumpy()
    return found


def assert_same_outcome(net, shape, number, atol=2e-4):
    """Compare a network with itself, before and after."""
    data = mx.nd.array(np.random.RandomState(0).normal(size=(8, *shape)))
    data.attach_grad()
    wanted = outcome(net, data)
    for name, param in net.collect_params().items():
        if name.endswith("running_mean"):
            param.set_data(mx.nd.zeros(param.shape))
        if name.endswith("running_var"):
            param.set_data(mx.nd.ones(param.shape))
    use_products(net, shape)
    assert products(net) == number
    net.hybridize(static_alloc=True, static_shape=True)
    got = outcome(net, data)
    assert got.keys() == wanted.keys()
    for name, values in wanted.items():
        scale = max(np.abs(values).max(), 1e-3)
        np.testing.assert_allclose(got[name] / scale, values / scale, atol=atol, err_msg=name)


@pytest.mark.parametrize("name, number", [("resnet18_v1", 4), ("resnet18_v2", 4), ("fast", 0)])
def test_a_network_computes_the_same(name, number):
    mx.random.seed(0)
    net = get_network(name, 10, SHAPE)
    net.initialize(mx.init.Xavier())
    assert_same_outcome(net, SHAPE, number)


def test_a_bias_an_activation_and_a_kernel_partly_on_the_image_are_kept():
    net = nn.HybridSequential()
    net.add(nn.Conv2D(8, 5, strides=2, padding=2, activation="relu", in_channels=3))  # 4 x 3 left
    net.add(nn.Conv2D(8, (6, 5), strides=4, padding=(2, 2), activation="relu", in_channels=8))
    net.add(nn.Conv2D(4, 5, padding=2, use_bias=False, in_channels=8))
    net.initialize(mx.init.Normal(0.3))
    assert_same_outcome(net, (3, 7, 5), 2)
    assert net[1].seen == [(2, 6), (2, 5)] and net[2].seen == [(2, 3), (2, 3)]


@pytest.mark.parametrize(
    "conv, channels, size",
    [
        (nn.Conv2D(4, 3, padding=1, groups=2, in_channels=4), 4, 1),
        (nn.Conv2D(4, 3, padding=2, dilation=2, in_channels=4), 4, 1),
        (nn.Conv2D(1, 3, padding=1, layout="NHWC", in_channels=1), 1, 1),
        (nn.Conv2D(4, 1, in_channels=4), 4, 1),
        (nn.Conv2D(4, 3, strides=4, padding=1, in_channels=4), 4, 3),  # does not see the last row
        (nn.Conv2D(4, 3, padding=1, in_channels=4), 4, 3),
        (nn.Conv2D(4, 3, padding=1, in_channels=4), 4, 2),
    ],
)
def test_a_convolution_that_sees_more_than_a_pixel_or_is_unusual_is_left_alone(
    conv, channels, size
):
    net = nn.HybridSequential()
    net.add(conv)
    use_products(net, (channels, size, size))
    assert type(conv) is nn.Conv2D


def test_a_convolution_that_is_used_twice_is_left_alone():
    conv = nn.Conv2D(4, 3, strides=2, padding=1, in_channels=4)
    net = nn.HybridSequential()
    net.add(conv, conv)
    use_products(net, (4, 2, 2))
    assert type(conv) is nn.Conv2D


class Relus(nn.HybridBlock):
    """A layer with one name before and after a convolution."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2D(4, 3, strides=2, padding=1, in_channels=4)
        self.relu = nn.Activation("relu")

    def hybrid_forward(self, F, x):
        return self.relu(self.conv(self.relu(x)))


def test_a_convolution_whose_images_are_not_clear_is_left_alone():
    net = Relus()
    use_products(net, (4, 2, 2))
    assert type(net.conv) is nn.Conv2D


@pytest.mark.long
@needs_avx512
def test_bfloat16_computes_products_too(tmp_path):
    job = launch(tmp_path, program=PROGRAMS / "products_in_bfloat16.py")
    assert job.status == 0 and "products: 4\n" in job.stdout, job.stdout + job.stderr


def test_files_describe_mxnets_own_layers():
    cpu, plain = [mx.cpu()], get_network("resnet18_v1", 10, SHAPE)
    net = get_network("resnet18_v1", 10, SHAPE, cpu)
    assert products(net) == 4
    assert network_json(net) == network_json(plain)
    assert products(net) == 4
    assert list(net.collect_params()) == list(plain.collect_params())
    with pytest.raises(ZeroDivisionError), as_convolutions(net):
        assert products(net) == 0
        raise ZeroDivisionError
    assert products(net) == 4
