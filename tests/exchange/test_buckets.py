"""Gradients in buckets: the same updates, fewer messages."""

import re
import sys
from types import SimpleNamespace

from gluon_dist.exchange import buckets
from gluon_dist.exchange.buckets import Buckets

import mxnet as mx
import numpy as np
import pytest
from explicit import ExplicitTrainer
from mxnet.gluon import nn

from launching import PROGRAMS, TRAIN, launch

TIME_BUDGET_S = 40
SIZES = (3, 200, 5, 70, 2)


def small_network(ctx):
    mx.random.seed(0)
    net = nn.HybridSequential(prefix="net_")
    with net.name_scope():
        for width, width_in in zip(SIZES[1:], SIZES):
            net.add(nn.Dense(width, in_units=width_in))
    net.initialize(mx.init.Xavier(), ctx=ctx)
    return net


def several_workers(seen):
    """As far as Buckets knows them: what their store is asked to send is written down."""
    store = SimpleNamespace(
        init=lambda *_: None, pushpull=lambda key, value, priority: seen.append(f"send {key}")
    )
    return SimpleNamespace(own_store=store, store_type="dist_sync", take_keys=lambda number: 0)


def trained(exchange=None):
    """Train on two devices, without an exchange by MXNet's Trainer; return the parameters."""
    ctx = [mx.cpu(0), mx.cpu(1)]
    net, store = small_network(ctx), mx.kv.create("device")
    sgd = mx.optimizer.SGD(learning_rate=0.1, momentum=0.9)
    if exchange is None:
        trainer = mx.gluon.Trainer(net.collect_params(), sgd, None, store, update_on_kvstore=False)
    else:
        trainer = ExplicitTrainer(net.collect_params(), sgd, store, exchange)
    for step in range(3):
        with mx.autograd.record():
            losses = [
                (net(mx.nd.ones((4, 3), c) * (step + i)) ** 2).sum() for i, c in enumerate(ctx)
            ]
        mx.autograd.backward(losses)
        trainer.step(4)
    return [param.data(c).asnumpy() for param in net.collect_params().values() for c in ctx]


@pytest.mark.parametrize("bucket_bytes, number", [(0, 8), (1000, 3), (1 << 20, 1)])
def test_buckets_of_any_size_make_the_updates_of_messages_for_each_parameter(bucket_bytes, number):
    exchange = Buckets(bucket_bytes)
    for x, y in zip(trained(), trained(exchange)):
        np.testing.assert_array_equal(x, y)
    assert len(exchange.buckets) == number


def test_a_bucket_is_full_when_it_has_its_bytes_and_keeps_the_order_of_the_layers():
    names = ("d", "a", "c", "b")
    params = {n: mx.gluon.Parameter(n, shape=(size,)) for n, size in zip(names, (10, 300, 20, 5))}
    for param in params.values():
        param.initialize()
    params["a"].dtype = "float32"  # the same type by another name
    exchange = Buckets(1000)
    exchange.move_gradients(list(params.values()))
    for number, (array,) in enumerate(exchange.buckets):
        array[:] = mx.nd.arange(array.size) + 1000 * number
    begins = [params[name].grad()[0].asscalar() for name in names]
    assert begins == [0, 1000, 1304, 1336]  # each at a multiple of 16


@pytest.mark.parametrize(
    ("width", "servers", "sizes"),
    [
        (60, 0, [7 * 3600]),  # Horovod, and a store of this process alone
        (60, 1, [7 * 3600]),
        (60, 2, [7 * 3600]),  # two small messages take longer than one
        (200, 1, [7 * 40000]),
        (200, 2, [3 * 40000, 4 * 40000]),
        (200, 3, [40000, 3 * 40000, 3 * 40000]),
        (400, 2, [7 * 160000]),  # MXNet cuts it
    ],
)
def test_a_small_network_is_spread_over_the_servers(width, servers, sizes, monkeypatch):
    monkeypatch.setenv("DMLC_NUM_SERVER", str(servers))
    params = {n: mx.gluon.Parameter(str(n), shape=(width, width)) for n in range(7)}
    for param in params.values():
        param.initialize()
    exchange = Buckets()
    exchange.move_gradients(list(params.values()))
    assert [bucket[0].size for bucket in exchange.buckets] == sizes


def test_each_server_gets_its_part_of_a_small_network(tmp_path):
    job = launch(tmp_path, "-n", 1, "-s", 2, sys.executable, PROGRAMS / "bytes_of_servers.py")
    assert job.status == 0, job.stderr
    (sent,) = re.findall(r"sent (\d+) (\d+)", job.stdout)
    assert sum(map(int, sent)) == pytest.approx(4 * 280000, rel=0.01)
    assert int(sent[0]) == pytest.approx(int(sent[1]), rel=0.5)


def test_gradients_stay_where_they_are_until_they_are_moved():
    net = small_network(mx.cpu())
    before = net[0].weight.grad()
    exchange = Buckets()
    assert net[0].weight.grad() is before
    exchange.move_gradients(list(net.collect_params().values()))
    assert net[0].weight.grad() is not before


@pytest.mark.parametrize(
    ("bucket_bytes", "events"),
    [
        (0, "send 7, send 6, send 0, "
            "1 waits, send 1, 2 waits, send 2, 3 waits, send 3, 4 waits, send 4, 5 waits, send 5"),
        (1000, "send 2, send 1, send 0"),
        (1 << 20, "send 0"),
    ],
)  # fmt: skip
def test_first_layers_pass_all_but_the_last_two_buckets(bucket_bytes, events, monkeypatch):
    exchange, seen = Buckets(bucket_bytes), []
    params = small_network([mx.cpu(0), mx.cpu(1)]).collect_params()
    exchange.move_gradients(list(params.values()))
    numbers = {id(array): n for n, bucket in enumerate(exchange.buckets) for array in bucket}

    def wait_for(before, array):
        assert id(before) in map(id, exchange.buckets[-1]) and before.context == array.context
        seen.append(f"{numbers[id(array)]} waits")

    monkeypatch.setattr(buckets, "wait_for", wait_for)
    exchange.connect(several_workers(seen))
    exchange.add_up()
    assert ", ".join(dict.fromkeys(seen)) == events
    assert len(seen) - len(set(seen)) == events.count("waits")  # two devices


@pytest.mark.long
def test_p3_sends_slices_and_ends_at_the_same_parameters(tmp_path):
    few = "--data synthetic --network resnet --num-layers 8 --num-examples 128 --batch-size 32"
    options = (*few.split(), "--num-epochs", "1", "--allreduce", "servers", "--model-prefix")
    found = []
    for name, transport in (("usual", ()), ("p3", ("--p3",))):
        prefix = str(tmp_path / name)
        job = launch(tmp_path, "-n", 2, *transport, *TRAIN, *options, prefix)
        assert job.status == 0, job.stderr
        found.append(mx.nd.load(f"{prefix}-0001.params"))
    for name, array in found[0].items():
        np.testing.assert_array_equal(array.asnumpy(), found[1][name].asnumpy(), err_msg=name)
