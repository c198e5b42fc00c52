#!/usr/bin/env python3
"""A program of your own, made distributed and restartable: what is gd. is gluon_dist's.

    python own_program.py
    gluon-launch -n 2 --launcher local python own_program.py
    gluon-launch -n 4 -H hosts --max-restarts 3 python own_program.py

It learns to tell points inside a ring from those outside, and ends with the sum of its weights: the
same for any number of workers, also if it was killed and started again.
"""

import sys

import gluon_dist as gd  # before mxnet

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon

NUM_EPOCHS, BATCH_SIZE = 3, 60  # examples of all workers in a step


class Net(gluon.nn.HybridSequential):
    """Scores (n, 2) of points (n, 2)."""

    def __init__(self):
        super().__init__()
        for width in (32, 32):
            self.add(gluon.nn.Dense(width, activation="tanh"))
        self.add(gluon.nn.Dense(2))


def points(number, seed):
    """Points (number, 2), and whether each lies in the ring."""
    x = np.random.RandomState(seed).uniform(-1, 1, (number, 2)).astype("float32")
    radius = np.hypot(*x.T)
    return gluon.data.ArrayDataset(x, ((radius > 0.4) & (radius < 0.8)).astype("float32"))


def main(prefix):
    mx.random.seed(0)
    ctx, net = gd.devices(), Net()
    net.initialize(mx.init.Xavier(), ctx=ctx)
    net.hybridize()
    loss = gluon.loss.SoftmaxCrossEntropyLoss()
    trainer = gd.Trainer(net.collect_params(), "adam", {"learning_rate": 0.01})
    loader = gd.DataLoader(points(1000, seed=1), BATCH_SIZE)
    job = gd.Checkpoint(prefix, net, trainer)
    for epoch in job.epochs(NUM_EPOCHS):
        metric = gd.sync_metric(mx.metric.Accuracy())  # of all workers
        for batch in job.steps(loader):
            parts = batch.split(ctx)  # [(x, y)] on each device that has examples
            with autograd.record():
                outputs = [net(x) for x, _ in parts]
                losses = [loss(output, y) for output, (_, y) in zip(outputs, parts)]
            gd.backward(losses)
            trainer.step(batch.global_size)
            metric.update([y for _, y in parts], outputs)
        gd.average_statistics(net)
        name, accuracy = metric.get()
        print(f"Epoch {epoch}: {name} {accuracy:.4f}", flush=True)
    weights = sum(
        param.data(ctx[0]).abs().sum().asscalar() for param in net.collect_params().values()
    )
    print(f"Sum of the weights: {weights:.6f}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "out/own")
