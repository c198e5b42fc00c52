"""Gluon's side of what ``pytorch_side.py`` does in PyTorch."""

from types import SimpleNamespace

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon
from pytorch_side import examples

SGD = {"learning_rate": 0.1, "momentum": 0.9}


def steps_of_one_device():
    """Take three steps, on batches of 8, 8 and 5; return the weights after each, (3, 3, 4)."""
    x, y, first = map(mx.nd.array, examples())
    net, loss = gluon.nn.Dense(3, in_units=4), gluon.loss.SoftmaxCrossEntropyLoss()
    net.initialize()
    net.weight.set_data(first)
    trainer, weights = gluon.Trainer(net.collect_params(), "sgd", SGD), []
    for start in range(0, 21, 8):
        with autograd.record():
            error = loss(net(x[start : start + 8]), y[start : start + 8])
        error.backward()
        trainer.step(len(error))
        weights.append(net.weight.data().asnumpy())
    return np.array(weights)


def falling_rate(set_rate=gluon.Trainer.set_learning_rate):
    """Take twenty steps with a slope of 1; return the weights. Before the eleventh, set a rate."""
    weight = gluon.Parameter("weight", shape=(1,))
    weight.initialize(mx.init.Zero())
    trainer, path = gluon.Trainer([weight], "sgd", SGD, kvstore=None), []
    for step in range(20):
        if step == 10:
            set_rate(trainer, 0.01)
        with autograd.record():
            slope = 1 * weight.data()
        slope.backward()
        trainer.step(1)
        path.append(float(weight.data().asscalar()))
    return path


def batchnorm():
    norm = gluon.nn.BatchNorm(in_channels=1)
    norm.initialize()
    with autograd.record():
        out = norm(mx.nd.array([0, 1, 2, 3]).reshape((4, 1, 1, 1)))
    out.backward()  # running statistics are moved here, not in the forward pass
    mx.nd.waitall()
    found = {name: norm._kwargs[name] for name in ("momentum", "eps")}
    mean, var = (float(p.data().asscalar()) for p in (norm.running_mean, norm.running_var))
    return dict(found, mean=mean, var=var)


def first_weights():
    mx.random.seed(0)
    layers = {
        "dense": gluon.nn.Dense(100, in_units=1000),
        "convolution": gluon.nn.Conv2D(100, 3, in_channels=64),
    }
    for layer in layers.values():
        layer.initialize()
    return {
        name: {
            "std": float(layer.weight.data().asnumpy().std()),
            "bias": float(abs(layer.bias.data()).max().asscalar()),
        }
        for name, layer in layers.items()
    }


def adam_step(gradient, lr=0.1, epsilon=1e-8):
    """Return how far a weight moves in Adam's first step: in Gluon, and by PyTorch's formula.

    In the first step PyTorch's corrected averages are the gradient and its square.
    """
    adam = mx.optimizer.Adam(learning_rate=lr, epsilon=epsilon)
    weight = mx.nd.zeros(1)
    adam.update(0, weight, mx.nd.array([gradient]), adam.create_state(0, weight))
    return abs(float(weight.asscalar())), lr * gradient / (gradient + epsilon)


def test_images(flags, count):
    """Return the first test images, prepared as the training program with these flags does."""
    from command_line.parse import parse_args
    from helpers import ROOT
    from loader import create_loaders
    from sources.images import ImageSource

    flags = [str(ROOT / word) if word.endswith(".rec") else word for word in flags]
    args = parse_args(flags)
    _, tests = create_loaders(args, ImageSource(args), SimpleNamespace(count=1, rank=0))
    return next(iter(tests)).data[:count]
