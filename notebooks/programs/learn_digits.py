"""Train two networks, without and with BatchNorm, on digits, from three seeds each.

The workers add their gradients up by hand. Rank 0 prints a line of JSON for each training.
"""

import json
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2] / "cifar10_dist"))
sys.path.append(str(Path(__file__).resolve().parents[1]))
import mxnet_setup  # noqa: F401  before mxnet: servers and the scheduler never get further

import mxnet as mx
import numpy as np
from mxnet.gluon import nn

from digits import load_digits
from ground.failure import exit_with
from loader import EvalLoader, TrainLoader
from sources.augmentation import Augmentation
from training import CrossEntropy, evaluate, forward_backward
from workers import Workers, average_statistics

GLOBAL_BATCH = 50
NUM_TRAIN, NUM_TEST = 1200, 1000  # images, or all if there are fewer
NUM_EPOCHS = 6
LEARNING_RATE = 0.1
SEEDS = 0, 1, 2


def main():
    store = mx.kv.create("dist_sync")
    workers = Workers(store)
    digits = load_digits()
    train = digits.train_images[:NUM_TRAIN, None], digits.train_labels[:NUM_TRAIN]
    test = digits.test_images[:NUM_TEST, None], digits.test_labels[:NUM_TEST]
    own, gray = GLOBAL_BATCH // workers.count, Augmentation(mean=(0.0,), std=(255.0,))
    shares = EvalLoader(*test, 500, workers.count, workers.rank, gray)
    for has_batch_norm in (False, True):
        for seed in SEEDS:
            loader = TrainLoader(*train, own, workers.count, workers.rank, seed, gray)
            net = create_net(has_batch_norm, seed)
            results = train_and_test(net, loader, shares, workers)
            if workers.rank == 0:
                print(json.dumps({"batch_norm": has_batch_norm, "seed": seed, **results}))
    workers.barrier()  # nobody leaves while others still need the servers


def create_net(has_batch_norm, seed):
    """A network of two convolutions, whose weights depend on the seed alone."""
    mx.random.seed(seed)
    net = nn.HybridSequential()
    for channels in (16, 32):
        net.add(nn.Conv2D(channels, 3, padding=1))
        if has_batch_norm:
            net.add(nn.BatchNorm())
        net.add(nn.Activation("tanh"), nn.AvgPool2D())
    net.add(nn.Dense(10))
    net.infer_shape(mx.nd.zeros((1, 1, 28, 28)))
    net.initialize(mx.init.Xavier())
    net.hybridize()
    return net


def train_and_test(net, loader, test_loader, workers):
    """Train, and return accuracy and loss on the test images after each epoch."""
    options = {"learning_rate": LEARNING_RATE, "momentum": 0.9}
    trainer = mx.gluon.Trainer(net.collect_params(), "sgd", options, kvstore=None)
    results = {"accuracy": [], "loss": []}
    for epoch in range(NUM_EPOCHS):
        for batch in loader.epoch(epoch):
            forward_backward(net, CrossEntropy(), [batch.data], [batch.label], batch.global_size)
            add_up_gradients(net, workers)
            trainer.step(1)
        average_statistics(net, workers)
        result = evaluate(test_loader, net, [mx.cpu()], workers)
        for name, values in results.items():
            values.append(result[name])
    return results


def add_up_gradients(net, workers):
    """Replace every gradient by its sum over all workers."""
    gradients = [p.grad() for p in net.collect_params().values() if p.grad_req != "null"]
    total = workers.sum_float32(np.concatenate([g.asnumpy().ravel() for g in gradients]))
    ends = np.cumsum([g.size for g in gradients])
    for gradient, part in zip(gradients, np.split(total, ends[:-1])):
        gradient[:] = part.reshape(gradient.shape)


if __name__ == "__main__":
    exit_with(main, "learn_digits.py")
