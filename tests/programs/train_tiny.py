"""Train as the program does, but a network so small that the images hardly cost anything.

It has what makes a training hard to repeat, BatchNorm and dropout; TINY=plain is without them.
TINY_PAUSE is the time in seconds to wait after each step, for tests that want to hit one.
TINY_KEYS is the number of keys for exchanges beside gradients.
"""

import os
import time

import gluon_dist  # noqa: F401
from gluon_dist.common.failure import exit_with
from gluon_dist.workers import collectives

import mxnet as mx
from mxnet.gluon import nn

import cifar10_dist
from sources import synthetic


def create_network(args, ctx, images):
    mx.random.seed(args.seed)
    with mx.name.NameManager():
        net = nn.HybridSequential()
        net.add(nn.Conv2D(8, 3, strides=4))
        if os.environ.get("TINY") != "plain":
            net.add(nn.BatchNorm(), nn.Dropout(0.5))
        net.add(nn.Activation("relu"), nn.Dense(args.num_classes))
        net.infer_shape(mx.nd.zeros((1,) + args.image_shape))
    net.initialize(mx.init.Xavier(), ctx=ctx)
    net.hybridize(static_alloc=True, static_shape=True)
    return net


class SlowRun(cifar10_dist.TrainingRun):
    def step_done(self, *batch):
        super().step_done(*batch)
        time.sleep(float(os.environ.get("TINY_PAUSE", "0")))


def shrink(put=setattr):
    """Put the small network, and few images, in the place of the program's."""
    put(cifar10_dist, "TrainingRun", SlowRun)
    put(cifar10_dist, "create_network", create_network)
    put(synthetic, "NUM_TRAIN", 300)
    put(synthetic, "NUM_TEST", 100)


if __name__ == "__main__":
    shrink()
    if "TINY_KEYS" in os.environ:
        collectives.LAST_KEY = collectives.FIRST_KEY + int(os.environ["TINY_KEYS"]) - 1
    exit_with(cifar10_dist.main, "train_tiny.py")
