"""Tell the learning rates that act, from what they do to a weight.

The network is one weight, its loss the negative of it: every update adds the learning rate. Argv:
the kvstore and the file for the movements, JSON, a list for each of ``SETTINGS``.
"""

import json
import math
import sys

import gluon_dist  # noqa: F401  first
from gluon_dist.common.failure import exit_with
from gluon_dist.workers import group
from gluon_dist.workers.collectives import TrainerKeys
from gluon_dist.workers.workers import Workers

import mxnet as mx
from mxnet.gluon import HybridBlock
from shifted import Shifted

from command_line.parse import parse_args
from loader import Batch
from run.trainer import create_trainer
from training import forward_backward, split_batch

STEPS, EPOCHS = 3, 4
SETTINGS = (
    "--lr-scale none",
    "--lr-scale none --lr-schedule step --lr-step-epochs 1,3 --lr-factor 0.5",
    "--lr-scale none --lr-schedule cosine",
    "--lr-scale none --lr-schedule onecycle --warmup-epochs 1",
    "--lr-scale none --warmup-epochs 2",
    "--lr-scale linear",
    "--lr-scale sqrt",
    "--lr 0.5",
)
COMMON = "--optimizer sgd --mom 0 --lr 0.5 --batch-size 64 --num-epochs 4"


class OneWeight(HybridBlock):
    """Gives its weight for every image."""

    def __init__(self):
        super().__init__()
        self.w = self.params.get("w", shape=(1,), init="zeros")

    def hybrid_forward(self, F, x, w):
        return F.broadcast_add(0 * x, w)


def negative(output, label):
    return -output


def movements(args, workers, num_devices):
    """Train for all epochs; return by how much each update moved the weight."""
    ctx = [mx.cpu(i) for i in range(num_devices)]
    net = OneWeight()
    net.initialize(ctx=ctx)
    trainer = create_trainer(args, net, workers, STEPS)
    if workers.is_async:  # before one of them takes the first step alone
        trainer.restore_state(None, {})
    batch = Batch(mx.nd.zeros((4, 1)), mx.nd.zeros(4), 4 * workers.count)
    places, updates = [0.0], STEPS * EPOCHS * (workers.count if workers.is_async else 1)
    for update in range(1, updates + 1):
        turn = not workers.is_async or update % workers.count == workers.rank
        if turn:
            data, labels = split_batch(batch, ctx)
            forward_backward(net, negative, data, labels, batch.global_size)
            trainer.step(1)
        place = net.w.data(ctx[-1]).asscalar() if turn else 0.0
        if workers.is_async:  # one after the other, so that each sees its own update alone
            place = workers.all_reduce([place])[0]
        places.append(float(place))
        trainer.measure_staleness()
        assert trainer.learning_rate >= 0  # whoever reads it changes nothing
    return [after - before for before, after in zip(places, places[1:])]


def next_workers(workers, number):
    """Return them for one more Trainer: the servers of dist_async have one optimizer."""
    if not workers.is_async:
        return workers
    workers.collectives.take_trainer_keys = TrainerKeys()
    shifted = Shifted(workers.store, number)
    shifted.gluon_dist = workers.collectives
    group._workers = Workers(shifted)
    return group._workers


def assert_resumed_alike(workers):
    """The schedule goes on after the updates of all workers, which had made 1, 2, … steps."""
    args = parse_args([*COMMON.split(), "--kv-store", "dist_async", *SETTINGS[2].split()])
    net = OneWeight()
    net.initialize()
    trainer = create_trainer(args, net, workers, STEPS, steps_done=1 + workers.rank)
    done, end = sum(range(workers.count + 1)), STEPS * EPOCHS * workers.count + 1
    wanted = args.lr * (1 + math.cos(math.pi * (done + 1) / end)) / 2
    assert abs(trainer.learning_rate - wanted) < 1e-6, (trainer.learning_rate, wanted)


def main(kind=None, target=None, num_devices=1):
    """Write the movements for every setting."""
    store = mx.kv.create(kind)
    workers = Workers(store)
    found = []
    for number, setting in enumerate(SETTINGS):
        args = parse_args([*COMMON.split(), "--kv-store", kind, *setting.split()])
        found.append(movements(args, next_workers(workers, number), num_devices))
    if workers.is_async:
        assert_resumed_alike(next_workers(workers, len(SETTINGS)))
    if workers.rank == 0:
        with open(target, "w") as file:
            json.dump(found, file)
    workers.barrier()


if __name__ == "__main__":
    exit_with(lambda: main(sys.argv[1], sys.argv[2]), "effective_rate.py")
