"""Every Trainer and exchange does what is documented, and no caller uses more."""

import ast
import inspect
import json
import os

from gluon_dist.exchange.asynchronous import AsyncTrainer
from gluon_dist.exchange.buckets import Buckets
from gluon_dist.exchange.compression import HalfBuckets, TwoBits
from gluon_dist.exchange.exchange import Exchange
from gluon_dist.exchange.horovod import HorovodBuckets
from gluon_dist.exchange.shared_memory import SharedBuckets, SharedMemory
from gluon_dist.exchange.step_times import Timed
from gluon_dist.exchange.trainer import Trainer
from gluon_dist.workers.workers import Workers

import mxnet as mx
import numpy as np
import pytest
from mxnet.gluon import nn

from launching import ROOT
from loader import Batch
from run.trainer import PlannedTrainer
from training import CrossEntropy, forward_backward, split_batch

TIME_BUDGET_S = 10
SGD = {"learning_rate": 0.1, "momentum": 0.9}
DOCUMENTED = {
    *("devices", "learned", "learning_rate", "set_learning_rate", "loss_scale", "unsaved", "step"),
    *("update", "pull_weights", "measure_staleness", "explain", "exchange", "optimizer"),
    *("allreduce_grads", "collect_state", "restore_state", "params"),
}
PROGRAMS = ("explicit", "learn_by_every_trainer", "programs.learn_by_every_trainer")  # of tests
HELD_AS = ("trainer", "_trainer")  # the names of a Trainer outside its room


def kinds_of(base):
    found = {kind for sub in base.__subclasses__() for kind in (sub, *kinds_of(sub))}
    own = {kind for kind in found if kind.__module__ not in PROGRAMS}
    return sorted(own, key=lambda kind: kind.__name__)


def public(kind):
    return {name: value for name, value in vars(kind).items() if not name.startswith("_")}


def names_in(function):
    return list(inspect.signature(function).parameters)


def small_network():
    net = nn.Dense(4, in_units=3, prefix="net_")
    net.initialize(mx.init.Constant(1))
    return net


def shared_memory():
    """Of one worker."""
    memory = SharedMemory(os.memfd_create("test"), 0, 1)
    memory.create_barrier()
    return memory


TRAINERS = {
    Trainer: lambda params, store: Trainer(params, "sgd", SGD, store),
    PlannedTrainer: lambda params, store: PlannedTrainer(
        params, mx.optimizer.SGD(**SGD), store, schedule=lambda step: 0.1
    ),
    AsyncTrainer: lambda params, store: AsyncTrainer(params, mx.optimizer.SGD(**SGD), None, store),
}
EXCHANGES = {
    Buckets: Buckets,
    HalfBuckets: HalfBuckets,
    HorovodBuckets: HorovodBuckets,
    SharedBuckets: lambda: SharedBuckets(shared_memory()),
    Timed: lambda: Timed(Buckets()),
    TwoBits: lambda: TwoBits(0.5),
}


def test_each_way_is_tried_here_and_the_contract_is_the_documented_one():
    kinds = kinds_of(Trainer)
    ours = {kind for kind in kinds if kind.__module__.startswith(("gluon_dist.", "run."))}
    assert set(TRAINERS) - {Trainer} == ours
    assert set(EXCHANGES) == set(kinds_of(Exchange))
    assert set(public(Trainer)) <= DOCUMENTED
    assert all(inspect.getdoc(value) for value in public(Trainer).values() if value)


@pytest.mark.parametrize("base", [Trainer, Exchange])
def test_no_way_takes_other_arguments_or_has_public_members_of_its_own(base):
    for kind in kinds_of(base):
        for name, value in public(kind).items():
            assert hasattr(base, name), f"{kind.__name__}.{name} is not in the contract"
            if callable(value):
                assert names_in(value) == names_in(getattr(base, name))


def test_other_rooms_use_only_what_is_documented():
    found = []
    for path in sorted((ROOT / "cifar10_dist").rglob("*.py")):
        if path.parent.name == "exchange":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            holder = getattr(node, "value", None)
            held_as = getattr(holder, "id", None) or getattr(holder, "attr", None)
            if isinstance(node, ast.Attribute) and held_as in HELD_AS:
                found.append((node.attr, f"{path.name}:{node.lineno}"))
    assert len(found) > 10
    assert [use for use in found if use[0] not in DOCUMENTED] == []


@pytest.mark.parametrize("kind", TRAINERS)
def test_every_trainer_does_a_job_from_its_first_step_to_its_checkpoint(kind):
    net, workers = small_network(), Workers(mx.kv.create("local"))
    trainer = TRAINERS[kind](net.collect_params(), workers.store)
    batch = Batch(mx.nd.ones((2, 3)), mx.nd.zeros(2), 2)
    parts = split_batch(batch, trainer.devices)
    forward_backward(net, CrossEntropy(), *parts, batch.global_size)
    trainer.step(1)
    trainer.pull_weights()
    assert net.weight.data()[0].asnumpy() == pytest.approx(1 + 0.1 * 0.75)  # softmax: 1/4 of each
    assert [param.name for param in trainer.learned] == sorted(net.collect_params())
    assert (trainer.learning_rate, trainer.loss_scale, trainer.explain()) == (0.1, 1, [])
    assert set(trainer.measure_staleness().values()) <= {0}
    assert trainer.exchange.measure_steps() == []  # there is no other worker
    other = small_network().collect_params()
    assert_goes_on(trainer, TRAINERS[kind](other, mx.kv.create("local")))


def assert_goes_on(trainer, resumed):
    """See that a Trainer takes what one of its kind has saved, or says that nothing is."""
    facts, arrays = trainer.collect_state()
    assert (facts is None) == bool(trainer.unsaved)
    resumed.restore_state(json.loads(json.dumps(facts)), arrays)
    assert resumed.collect_state()[0] == facts


@pytest.mark.parametrize("kind", EXCHANGES)
def test_the_only_worker_gets_its_own_gradients_back_from_every_exchange(kind):
    net, exchange = small_network(), EXCHANGES[kind]()
    exchange.move_gradients(list(net.collect_params().values()))
    exchange.connect(Workers(mx.kv.create("local")))
    with mx.autograd.record():
        loss = (net(mx.nd.array([[1, 2, 3]])) ** 2).sum()
    loss.backward()
    exchange.add_up()
    np.testing.assert_array_equal(net.weight.grad().asnumpy(), [[12, 24, 36]] * 4)  # 2 * 6 * x
    assert all(isinstance(line, str) for line in exchange.explain())
