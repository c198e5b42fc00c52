"""Compare a convolution of one pixel in bfloat16 with MXNet's own, and see that networks use it."""

import gluon_dist  # noqa: F401  first

import mxnet as mx
import numpy as np
from mxnet.contrib import amp
from mxnet.gluon import nn

from networks.by_name import get_network
from networks.one_pixel import use_products


def outcome(with_products):
    """Return the output of such a convolution, and the gradient of its kernels."""
    mx.random.seed(0)
    net = nn.HybridSequential()
    net.add(nn.Conv2D(32, 3, strides=2, padding=1, in_channels=16, use_bias=False))
    net.initialize(mx.init.Xavier())
    if with_products:
        use_products(net, (16, 2, 2))
    assert hasattr(net[0], "seen") == with_products
    net.hybridize(static_alloc=True, static_shape=True)
    images = mx.nd.array(np.random.RandomState(0).normal(size=(8, 16, 2, 2)))
    with mx.autograd.record():
        out = net(images)
    out.backward()
    values = out.astype("float32").asnumpy()
    assert not (values.view(np.uint32) & 0xFFFF).any()  # bfloat16 is the first half of a float32
    return values, net[0].weight.grad().asnumpy()


amp.init(target_dtype="bfloat16")
for ours, plain in zip(outcome(True), outcome(False)):
    assert np.abs(ours - plain).max() < 0.02 * np.abs(plain).max() > 0  # numbers of 8 bits
blocks = []
get_network("resnet18_v1", 10, (3, 32, 32), [mx.cpu()]).apply(blocks.append)
print("products:", sum(hasattr(block, "seen") for block in blocks))
