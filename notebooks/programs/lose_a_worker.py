"""Rank 1 is killed in step 3: what does rank 0 do? Usage: lose_a_worker.py dist_sync|dist_async."""

import os
import signal
import sys

if __name__ == "__main__":
    signal.alarm(200)  # s until this process ends in any case, whatever it waits for
import gluon_dist  # before mxnet, from which no server returns
from gluon_dist.common.failure import exit_with

import mxnet as mx


def main(kind):
    store = mx.kv.create(kind)
    store.init(0, mx.nd.zeros(1))
    store.set_optimizer(mx.optimizer.SGD(learning_rate=1))  # each -1 that is pushed adds 1
    train(store, num_steps=6)
    print("my epoch is done", flush=True)
    store._barrier()  # nobody leaves while others still need the servers
    print("all are done", flush=True)


def train(store, num_steps):
    for step in range(num_steps):
        if store.rank == 1 and step == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        gradient, weight = mx.nd.full(1, -1), mx.nd.zeros(1)
        store.push(0, gradient)
        store.pull(0, out=weight)
        print(f"step {step}: the weight is {weight.asscalar():.0f}", flush=True)


if __name__ == "__main__":
    exit_with(lambda: main(sys.argv[1]), "lose_a_worker.py")
