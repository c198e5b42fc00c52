"""Train twenty steps in many settings, and evaluate; argv: the kvstore, and the file for results.

Worker 0 writes the parameters after each of ``SETTINGS`` and what ``evaluate`` gave for test sets
of the lengths ``TESTS``, all as arrays. Only the number of workers is not in the settings.
"""

import sys

import gluon_dist as gd  # first
from gluon_dist.common.failure import exit_with
from gluon_dist.workers.statistics import average_statistics
from gluon_dist.workers.workers import Workers

import mxnet as mx
import numpy as np
from mxnet.gluon import nn

from command_line.parse import parse_args
from loader import EvalLoader, TrainLoader
from run.trainer import create_trainer
from sources.transform import Transform
from training import CrossEntropy, evaluate, forward_backward, split_batch

RNG = np.random.RandomState(0)
IMAGES = RNG.randint(0, 256, (49, 3, 8, 8)).astype(np.uint8)
LABELS = RNG.randint(0, 4, 49)
GLOBAL_BATCH, STEPS, SEED = 12, 20, 5
TRANSFORM = Transform(1, True, True)
ONE, TWO, FOUR, MIXED = (1, 1, 1, 1), (2, 2, 2, 2), (4, 4, 4, 4), (1, 4, 2, 3)  # devices of rank 0…
# Name: examples (48 divide; 46 and 49 leave a last batch of 10 and of 1), devices, optimizer, and
# where gradients are added up: in shared memory only if all workers have one device.
SETTINGS = {
    f"{optimizer}-{length}-{'.'.join(map(str, devices))}-{place}": (
        length,
        devices,
        optimizer,
        place,
    )
    for length in (48, 46, 49)
    for devices, place in (
        (ONE, "auto"),
        (ONE, "servers"),
        (TWO, "auto"),
        (FOUR, "auto"),
        (MIXED, "auto"),
    )
    for optimizer in ("sgd", "adam")
    if optimizer == "sgd" or length == 49
}
RATE = {"sgd": 0.1, "adam": 0.01}
COMMON = "--mom 0.9 --wd 0.001 --lr-schedule cosine --lr-scale none"
TESTS = (1, 3, 10, 41, 49)


def small_network(ctx, batchnorm=False, dtype="float32"):
    """Smooth everywhere, so that a difference in the last bit stays one."""
    mx.random.seed(SEED)
    net = nn.HybridSequential(prefix="small_")
    with net.name_scope():
        net.add(nn.Conv2D(8, 3, activation="tanh", in_channels=3), nn.AvgPool2D())
        if batchnorm:
            net.add(nn.BatchNorm(in_channels=8))
        net.add(nn.Dense(16, activation="tanh", in_units=72), nn.Dense(4, in_units=16))
    net.initialize(mx.init.Xavier(), ctx=ctx)
    net.cast(dtype)
    net.hybridize()
    return net


def train(net, length, optimizer, place, ctx, store, workers):
    """Train for ``STEPS`` steps; return the trainer."""
    batch_size = GLOBAL_BATCH // workers.count
    epochs = STEPS // -(-length // GLOBAL_BATCH)
    options = f"{COMMON} --kv-store {sys.argv[1]} --optimizer {optimizer} --lr {RATE[optimizer]}"
    options += f" --allreduce {place}"
    args = parse_args(
        [*options.split(), "--batch-size", str(batch_size), "--num-epochs", str(epochs)]
    )
    share = (batch_size, workers.count, workers.rank, SEED)
    loader = TrainLoader(IMAGES[:length], LABELS[:length], *share, TRANSFORM)
    trainer = create_trainer(args, net, workers, len(loader))
    loss = CrossEntropy()
    for step in range(epochs * len(loader)):
        epoch, within = divmod(step, len(loader))
        batches = loader.epoch(epoch) if within == 0 else batches  # noqa: F821
        batch = next(batches)
        forward_backward(net, loss, *split_batch(batch, ctx), batch.global_size)
        trainer.step(1)
    return trainer


def parameters(net, ctx, workers):
    """Return them as one array, having seen that all devices of all workers hold the same."""
    params = [p for _, p in sorted(net.collect_params().items())]
    copies = [np.concatenate([p.data(c).asnumpy().ravel() for p in params]) for c in ctx]
    assert all((copy == copies[0]).all() for copy in copies)
    assert (workers.all_gather(copies[0]) == copies[0]).all()
    return copies[0]


def evaluations(net, ctx, workers):
    """Return top-1 and top-2 accuracy, loss and count for each length of the test set."""
    rows = []
    for length in TESTS:
        share = (7, workers.count, workers.rank, Transform())
        result = evaluate(EvalLoader(IMAGES[:length], LABELS[:length], *share), net, ctx, 2)
        rows.append([result[k] for k in ("accuracy", "top_k_accuracy", "loss", "num_examples")])
    assert (workers.all_gather(np.ravel(rows)) == np.ravel(rows)).all()
    return np.array(rows)


def main():
    store = gd.store(sys.argv[1])
    workers = Workers(store)
    settings = {"async": (49, MIXED, "sgd", "servers")} if workers.is_async else SETTINGS
    found = {}
    for name, (length, devices, optimizer, place) in settings.items():
        ctx = [mx.cpu(i) for i in range(devices[workers.rank])]
        net = small_network(ctx)
        trainer = train(net, length, optimizer, place, ctx, store, workers)
        is_shared = any("in shared memory" in line for line in trainer.explain())
        may_share = devices == ONE and place == "auto" and store.type != "horovod"
        assert is_shared == (may_share and workers.count > 1)
        trainer.pull_weights()
        found[name] = parameters(net, ctx, workers)
    ctx = [mx.cpu(i) for i in range(MIXED[workers.rank])]
    # The evaluation of parameters that are the same for any number of workers.
    found["evaluations"] = evaluations(
        net if workers.is_async else small_network(ctx), ctx, workers
    )
    if not workers.is_async:  # with BatchNorm workers and devices agree, after the average
        net = small_network(ctx, batchnorm=True)
        train(net, 46, "sgd", "auto", ctx, store, workers)
        average_statistics(net, workers)
        evaluations(net, ctx, workers)
        parameters(net, ctx, workers)
    if workers.rank == 0:
        np.savez(sys.argv[2], **found)
    workers.barrier()


if __name__ == "__main__":
    exit_with(main, "exact.py")
