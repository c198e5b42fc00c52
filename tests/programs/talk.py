"""Workers sum, gather, average and agree over a store, argv: its type.

Then they do so again under compression, or with the servers' optimizer of dist_async.
"""

import sys
import time

import gluon_dist
from gluon_dist.common.errors import UsageError
from gluon_dist.common.failure import exit_with
from gluon_dist.exchange.server_optimizer import CountingOptimizer
from gluon_dist.workers import workers as workers_module
from gluon_dist.workers.collectives import Collectives
from gluon_dist.workers.statistics import average_statistics
from gluon_dist.workers.workers import Workers

import mxnet as mx
import numpy as np
from mxnet.gluon import nn


def main():
    store = gluon_dist.store(sys.argv[1])
    workers = Workers(store)
    talk(workers)
    if workers.is_async:
        store.set_optimizer(CountingOptimizer(mx.optimizer.SGD()))
        workers.barrier()
        workers.collectives.note_server_optimizer()
        workers.collectives.barrier = lambda: leave_late(workers)
        talk(workers)
    elif store.type != "horovod":
        params = {"type": "2bit", "threshold": "0.001667"}  # no power of two
        store.set_gradient_compression(params)
        workers.barrier()  # the servers know
        workers.collectives.note_compression(params["threshold"])
        talk(workers)
    workers.barrier()
    print("talk done")


def leave_late(workers):
    """Leave the barrier one after the other: the last pulls when the first has pushed again."""
    Collectives.barrier(workers.collectives)
    time.sleep(0.03 * workers.rank)


def talk(workers):
    sums(workers)
    gather(workers)
    average(workers)
    agree(workers)


def sums(workers):
    rank, count = workers.rank, workers.count
    for number in range(5):  # the same keys again and again: a sum must never mix two rounds
        got = workers.all_reduce([rank + number, 2**40 + 1, 0.1])
        wanted = [sum(range(count)) + count * number, count * (2**40 + 1), sum([0.1] * count)]
        assert got.tolist() == wanted  # float32 would differ at 1e-8
    for number in range(5):
        flags = workers.all_reduce(np.float32([rank == number, 1]))
        assert flags.tolist() == [number < count, count]


def gather(workers):
    """Any bits come through; 20,000 numbers in bits are cut over all servers."""
    special = [np.nan, np.inf, -np.inf, -0.0, 5e-324, 2.0**53 + 1, np.pi]
    for size in (0, 20_000):
        rows = [np.random.RandomState(r).randn(size) for r in range(workers.count)]
        rows = [np.append(row, special) for row in rows]
        got = workers.all_gather(rows[workers.rank])
        assert got.dtype == np.float64 and got.tobytes() == np.array(rows).tobytes()


def average(workers):
    rank, count = workers.rank, workers.count
    devices = [mx.cpu(i) for i in range(rank + 1)]  # not the same number on every worker
    net = nn.BatchNorm(in_channels=3)
    net.initialize(ctx=devices)
    for i, device in enumerate(devices):
        net.running_mean.data(device)[:] = 10 * rank + i
    average_statistics(net, workers)
    mean = np.mean([10 * r + i for r in range(count) for i in range(r + 1)], dtype=np.float32)
    for device in devices:
        assert (net.running_mean.data(device).asnumpy() == mean).all()


def agree(workers):
    workers.agree({"data": "the same", "--lr": "0.1"})
    workers_module.OTHERS_WAIT_S = 0
    try:
        workers.agree({"data": "the same", "--lr": "0.2" if workers.rank == 1 else "0.1"})
    except UsageError as error:
        others = ", ".join(str(r) for r in range(workers.count) if r != 1)
        wanted = f"the workers differ in --lr: 0.1 on worker {others}, 0.2 on worker 1; start all"
        assert str(error).startswith(wanted), error
        print("agreement refused")


exit_with(main, "talk.py")
