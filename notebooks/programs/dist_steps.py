"""The three steps of ``pytorch_side.data_parallel_steps`` in Gluon: dist_steps.py FILE.npy."""

import sys

import gluon_dist as gd  # before mxnet, from which no server returns
from gluon_dist.common.failure import exit_with

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon
from pytorch_side import examples

import lesson  # noqa: F401
from sampler import GlobalBatchSampler


def train():
    store = gd.store()  # rank, number of workers and addresses: from the launcher
    x, y, first = map(mx.nd.array, examples())
    net = gluon.nn.Dense(3, in_units=4)
    net.initialize()
    net.weight.set_data(first)
    loss = gluon.loss.SoftmaxCrossEntropyLoss()
    options = {"learning_rate": 0.1, "momentum": 0.9}
    params = net.collect_params()
    trainer = gd.Trainer(params, "sgd", options)  # all begin with rank 0's weights
    sampler = GlobalBatchSampler(np.arange(21), 8, store.num_workers, store.rank)
    weights = []
    for indices, global_size in sampler.batches():
        with autograd.record():
            error = loss(net(x[indices]), y[indices])
        error.backward()
        trainer.step(global_size)  # gradients are added up over the workers, and divided, here
        print(f"{len(indices)} of {global_size} examples", flush=True)
        weights.append(net.weight.data().asnumpy())
    return store, weights


def main():
    store, weights = train()
    if store.rank == 0:
        np.save(sys.argv[1], weights)  # after each step, shape (3, 3, 4)
    store._barrier()  # nobody leaves while others still need the servers


if __name__ == "__main__":
    exit_with(main, "dist_steps.py")
