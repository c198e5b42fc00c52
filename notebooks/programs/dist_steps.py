"""The three steps of ``pytorch_side.data_parallel_steps`` in Gluon: dist_steps.py FILE.npy."""

import sys

import gluon_dist as gd  # before mxnet, from which no server returns

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon
from pytorch_side import examples


def train():
    x, y, first = map(mx.nd.array, examples())
    net = gluon.nn.Dense(3, in_units=4)
    net.initialize()
    net.weight.set_data(first)
    loss = gluon.loss.SoftmaxCrossEntropyLoss()
    options = {"learning_rate": 0.1, "momentum": 0.9}
    trainer = gd.Trainer(net.collect_params(), "sgd", options)  # all begin with rank 0's weights
    loader = gd.DataLoader(gluon.data.ArrayDataset(x, y), 8, shuffle=False)
    weights = []
    for batch in loader:
        data, label = batch  # this worker's part
        with autograd.record():
            error = loss(net(data), label)
        error.backward()
        trainer.step(batch.global_size)  # gradients are added up over the workers, and divided
        print(f"{batch.size} of {batch.global_size} examples", flush=True)
        weights.append(net.weight.data().asnumpy())
    return weights


def main():
    weights = train()
    if gd.rank() == 0:
        np.save(sys.argv[1], weights)  # after each step, shape (3, 3, 4)
    gd.barrier()  # nobody leaves while others still need the servers


if __name__ == "__main__":
    main()
