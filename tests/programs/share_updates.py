"""Train with each optimizer, updates shared and not: the same weights, the same states, also on.

argv: names of optimizers.
"""

import itertools
import sys

import mxnet_setup  # noqa: F401  first

import mxnet as mx
import numpy as np
from mxnet.gluon import nn
from process.failure import run
from saving.state import collect_optimizer, restore_optimizer
from shifted import Shifted
from trainers.sharded_updates import ShardedTrainer
from trainers.shared_memory import SharedMemoryTrainer, share_memory
from trainers.worker_trainer import Lookahead
from workers import Workers

STEPS, WIDTHS = 4, (3, 40, 5, 2)
OPTIONS = {"learning_rate": 0.1, "wd": 0.01}
MORE = {name: {"momentum": 0.9} for name in ("sgd", "ccsgd", "nag", "signum")}


def create(kind, name, memory, store):
    """Return a network and its trainer."""
    mx.random.seed(0)
    net = nn.HybridSequential(prefix="net_")
    with net.name_scope():
        for width, width_in in zip(WIDTHS[1:], WIDTHS):
            net.add(nn.Dense(width, activation="tanh", in_units=width_in))
    net[1].bias.lr_mult = 64
    net[2].bias.grad_req = "null"
    net.initialize(mx.init.Xavier())
    net.hybridize(static_alloc=True, static_shape=True, backward_bulk_size=1)
    params = net.collect_params()
    lookahead = Lookahead([p for p in params.values() if p.grad_req != "null"], 2, 2 * STEPS)
    options = dict(OPTIONS, **MORE.get(name, {}))
    trainer = kind(params, name, options, store, lookahead, memory=memory)
    trainer._init_kvstore()
    trainer._init_params()
    mx.nd.waitall()
    return net, trainer


def train(net, trainer, rank, first):
    """Take some steps, each worker with data of its own."""
    for number in range(first, first + STEPS):
        data = mx.nd.array(np.random.RandomState([rank, number]).randn(8, WIDTHS[0]))
        with mx.autograd.record():
            loss = (net(data) ** 2).mean()
        loss.backward()
        trainer.begin_step(number, 0.1 / number)
        trainer.step(1)


def outcome(net, trainer):
    """Return the weights, and the optimizer's state as it is saved."""
    facts, arrays = collect_optimizer(trainer)
    weights = [param.data().asnumpy() for param in net.collect_params().values()]
    return weights, facts, {name: array.asnumpy() for name, array in arrays.items()}


def assert_same(ours, theirs):
    """Compare two outcomes, to the last bit."""
    for x, y in zip(ours[0], theirs[0]):
        np.testing.assert_array_equal(x, y)
    assert ours[1] == theirs[1] and ours[2].keys() == theirs[2].keys()
    for name, x in ours[2].items():
        np.testing.assert_array_equal(x, theirs[2][name], err_msg=name)


def main():
    """Compare the two ways."""
    store = mx.kv.create("dist_sync")
    stores = (Shifted(store, place) for place in itertools.count())
    workers = Workers(store)
    memory = share_memory(workers, True, 0)
    for name in sys.argv[1:]:
        net, trainer = create(SharedMemoryTrainer, name, memory, next(stores))
        shared_net, sharded = create(ShardedTrainer, name, memory, next(stores))
        for first in (1, 1 + STEPS):
            train(net, trainer, store.rank, first)
            train(shared_net, sharded, store.rank, first)
            plain, ours = outcome(net, trainer), outcome(shared_net, sharded)
            assert_same(ours, plain)
            if first == 1:
                weights, facts, arrays = ours
        # Again from the middle.
        again, resumed = create(ShardedTrainer, name, memory, next(stores))
        for param, value in zip(again.collect_params().values(), weights):
            param.set_data(mx.nd.array(value))
        restore_optimizer(resumed, facts, arrays)
        train(again, resumed, store.rank, 1 + STEPS)
        assert_same(outcome(again, resumed), plain)
        try:
            resumed.step(1)
            raise AssertionError("old gradients were taken again")
        except UserWarning:
            pass
        print(f"{name}: the same; {len(sharded._own)} of {len(sharded._learned)}", flush=True)
    workers.barrier()


if __name__ == "__main__":
    run(main, "share_updates.py")
