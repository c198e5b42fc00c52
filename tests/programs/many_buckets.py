"""Train a network in buckets of several sizes, and see that all give what no buckets give."""

import os

import gluon_dist  # noqa: F401  first
from gluon_dist.exchange.buckets import Buckets
from gluon_dist.workers.workers import Workers

import mxnet as mx
import numpy as np
from explicit import ExplicitTrainer
from mxnet.gluon import nn

STEPS, WIDTHS = 6, (3, 40, 50, 20, 60, 30, 2)


def trained(store, bucket_bytes=None):
    """Return the parameters after some steps, each worker with data of its own.

    Without ``bucket_bytes`` MXNet's own Trainer sends a message for each parameter.
    """
    mx.random.seed(0)
    net = nn.HybridSequential(prefix="net_")
    with net.name_scope():
        for width, width_in in zip(WIDTHS[1:], WIDTHS):
            net.add(nn.Dense(width, activation="tanh", in_units=width_in))
    net.initialize(mx.init.Xavier())
    net.hybridize(static_alloc=True, static_shape=True, backward_bulk_size=1)
    params = net.collect_params()
    sgd, exchange = mx.optimizer.SGD(learning_rate=0.1, momentum=0.9), None
    if bucket_bytes is None:
        trainer = mx.gluon.Trainer(params, sgd, None, store, update_on_kvstore=False)
    else:
        exchange = Buckets(bucket_bytes)
        trainer = ExplicitTrainer(params, sgd, store, exchange)
    data = mx.nd.array(np.random.RandomState(store.rank).randn(8, WIDTHS[0]))
    for _ in range(STEPS):
        with mx.autograd.record():
            loss = (net(data) ** 2).mean()
        loss.backward()
        trainer.step(1)
    return [param.data().asnumpy() for param in params.values()], exchange


def main():
    """Compare the parameters."""
    store = mx.kv.create("dist_sync")
    plain, _ = trained(store)
    Workers(store).take_keys(100)  # MXNet's Trainer has some
    for bucket_bytes, number in ((0, 12), (4000, 5), (1 << 20, 1)):
        ours, exchange = trained(store, bucket_bytes)
        assert len(exchange.buckets) == number, len(exchange.buckets)
        assert exchange.overtakes == (os.environ.get("DMLC_PS_VAN_TYPE") != "p3")
        for x, y in zip(plain, ours):
            np.testing.assert_allclose(y, x, rtol=1e-5, atol=1e-6)
    print("equal", flush=True)


main()
