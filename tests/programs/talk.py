"""Two or more workers sum, gather, agree and average over a store; argv: kvstore type."""

import sys

import mxnet_setup  # noqa: F401  first

import mxnet as mx
import numpy as np
from failure import UsageError, run
from mxnet.gluon import nn
from workers import Workers, average_statistics


def main():
    store = mx.kv.create(sys.argv[1])
    workers = Workers(store)
    rank, count = workers.rank, workers.count
    for number in range(5):  # the same key again and again: a sum must never mix two rounds
        got = workers.sum([rank + number, 2**40 + 1, 0.1])
        wanted = [sum(range(count)) + count * number, count * (2**40 + 1), 0.1 * count]
        np.testing.assert_allclose(got, wanted, rtol=1e-15)  # float32 would differ at 1e-8
    rows = workers.gather([rank, 10 * rank])
    assert rows.tolist() == [[r, 10.0 * r] for r in range(count)]

    devices = [mx.cpu(i) for i in range(rank + 1)]  # not the same number on every worker
    net = nn.BatchNorm(in_channels=3)
    net.initialize(ctx=devices)
    for i, device in enumerate(devices):
        net.running_mean.data(device)[:] = 10 * rank + i
    average_statistics(net, workers)
    values = [10 * r + i for r in range(count) for i in range(r + 1)]
    for device in devices:
        np.testing.assert_allclose(
            net.running_mean.data(device).asnumpy(), np.mean(values), rtol=1e-6
        )

    workers.agree({"data": "the same", "--lr": "0.1"})
    try:
        workers.agree({"data": "the same", "--lr": "0.1" if rank == 0 else "0.2"})
    except UsageError as error:
        assert "--lr: 0.1 on worker 0, 0.2 on worker 1" in str(error), error
        print("agreement refused")
    workers.barrier()
    print("talk done")


run(main, "talk.py")
