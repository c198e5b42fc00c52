"""The three steps of ``pytorch_side.data_parallel_steps`` in Gluon: dist_steps.py FILE.npy."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2] / "cifar10_dist"))
import mxnet_setup  # noqa: F401  before mxnet: servers and the scheduler never get further

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon
from pytorch_side import examples

from ground.failure import exit_with
from sampler import GlobalBatchSampler
from trainers.create import share_weights


def train():
    store = mx.kv.create("dist")  # rank, number of workers and addresses: from the launcher
    x, y, first = map(mx.nd.array, examples())
    net = gluon.nn.Dense(3, in_units=4)
    net.initialize()
    net.weight.set_data(first)
    loss = gluon.loss.SoftmaxCrossEntropyLoss()
    options = {"learning_rate": 0.1, "momentum": 0.9}
    params = net.collect_params()
    trainer = gluon.Trainer(params, "sgd", options, kvstore=store, update_on_kvstore=False)
    share_weights(trainer)  # rank 0's, to all
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
