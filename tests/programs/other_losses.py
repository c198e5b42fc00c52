"""Train in float64, by plain MXNet, as notebook 04 says for losses that are not one an example.

Usage: other_losses.py mean|weighted|sum|counts|penalty|clip|divided|last-layer FILE

Without the launcher it is the plain program for one device, whose loss is one number.
"""

import os
import sys
from pathlib import Path

import numpy as np

np.bool = bool  # plain MXNet, with any NumPy

import mxnet as mx  # noqa: E402
from mxnet import autograd, gluon  # noqa: E402

sys.path.append(str(Path(__file__).resolve().parents[2] / "notebooks"))
from programs.own import step4_right as step4  # noqa: E402

NUM_EXAMPLES, BATCH_SIZE, NUM_EPOCHS = 31, 10, 4  # batch of all workers; the last has one
LIMIT, DECAY = 0.05, 0.01  # of a gradient's norm, and of the penalty on weights
a, b = gluon.loss.L2Loss(), gluon.loss.L1Loss()  # one number an example


def create_net(kind):
    """A network whose last layer alone learns, if the kind is ``last-layer``."""
    net = gluon.nn.HybridSequential(prefix="net_")
    with net.name_scope():
        net.add(gluon.nn.Dense(8, in_units=4, activation="tanh"))
        if kind == "last-layer":
            net.add(gluon.nn.BatchNorm(in_channels=8))
            net.collect_params().setattr("grad_req", "null")
        net.add(gluon.nn.Dense(2, in_units=8))
    net.cast("float64")
    return net


def output_of(net, kind, x):
    if kind != "last-layer":
        return net(x)
    with autograd.pause():  # BatchNorm uses its averages, and keeps them
        x = net[:-1](x)
    return net[-1](x)


def penalty(net, ctx):
    return DECAY * sum((param.data(ctx) ** 2).sum() for param in net.collect_params().values())


def clip(net, ctx, limit):
    """As ``gluon.utils.clip_global_norm``, which refuses float64."""
    gradients = [p.grad(ctx) for p in net.collect_params().values()]
    norm = sum((gradient**2).sum() for gradient in gradients).sqrt().asscalar()
    for gradient in gradients:
        gradient *= min(limit / norm, 1)


def one_loss(net, kind, x, y, w):
    """The loss of a whole batch."""
    output = output_of(net, kind, x)
    if kind == "weighted":
        return (a(output, y) * w).sum() / w.sum()
    if kind == "sum":
        return a(output, y).mean() + 0.3 * b(output, y).mean()
    if kind == "counts":  # the second loss is the mean over some of the examples
        chosen = w > 0.5
        return a(output, y).mean() + (b(output, y) * chosen).sum() / max(chosen.sum().asscalar(), 1)
    return a(output, y).mean() + (penalty(net, x.context) if kind == "penalty" else 0)


def loss_of_part(net, kind, x, y, w, size, count):
    """What a device computes: ``size`` of all workers' examples, ``count`` of what is counted."""
    output = output_of(net, kind, x)
    if kind == "mean":
        return a(output, y).mean() * len(x)
    if kind == "weighted":
        return a(output, y) * w
    if kind == "sum":
        return a(output, y) + 0.3 * b(output, y)
    if kind == "counts":
        return a(output, y) / size + b(output, y) * (w > 0.5) / count
    if kind == "penalty":
        return a(output, y) + penalty(net, x.context)
    return a(output, y) / (size if kind == "divided" else 1)


def split(ctx, *arrays):
    """Pairs of parts, as ``step4.split`` makes them, in float64."""
    busy = ctx[: len(arrays[0])]
    cut = [np.array_split(array, max(len(busy), 1)) for array in arrays]
    return [
        [mx.nd.array(part, on, dtype="float64") for part in row] for on, *row in zip(busy, *cut)
    ]


def main(kind, path):
    is_job = "DMLC_ROLE" in os.environ
    store = mx.kv.create("dist_sync" if is_job else "device")
    ctx = [mx.cpu(1), mx.cpu(2)] if is_job else [mx.cpu(1)]
    random = np.random.RandomState(0)
    data = random.randn(NUM_EXAMPLES, 4), random.randn(NUM_EXAMPLES, 2), random.rand(NUM_EXAMPLES)
    mx.random.seed(store.rank)  # other weights on each worker
    net = create_net(kind)
    net.initialize(mx.init.Xavier(), ctx=ctx)
    sgd = {"learning_rate": 0.1, "momentum": 0.9}
    params = net.collect_params()
    trainer = gluon.Trainer(params, "sgd", sgd, kvstore=store, update_on_kvstore=False)
    step4.share_weights(trainer)
    for epoch in range(NUM_EPOCHS):
        order = np.random.RandomState(epoch).permutation(NUM_EXAMPLES)
        for first in range(0, NUM_EXAMPLES, BATCH_SIZE):
            batch = order[first : first + BATCH_SIZE]
            mine = batch[slice(*step4.split_range(len(batch), store.num_workers, store.rank))]
            parts = split(ctx, *(array[mine] for array in data))
            w = data[2][batch]  # of all workers
            count = w.sum() if kind == "weighted" else max((w > 0.5).sum(), 1)
            with autograd.record():
                if is_job:
                    losses = [loss_of_part(net, kind, *part, len(batch), count) for part in parts]
                else:
                    losses = [one_loss(net, kind, *parts[0])]
            if losses:
                autograd.backward(losses)
            step4.zero_idle_gradients(net)
            divisor = {"weighted": count, "counts": 1, "divided": 1}.get(kind, len(batch))
            divisor = divisor if is_job else 1
            trainer.allreduce_grads()
            if kind in ("clip", "divided"):
                for device in ctx:
                    clip(net, device, LIMIT * divisor)
            trainer.update(divisor)
    if store.rank == 0:
        np.savez(path, **{name: p.list_data()[0].asnumpy() for name, p in params.items()})
    mx.nd.waitall()
    store._barrier()


if __name__ == "__main__":
    main(*sys.argv[1:])
