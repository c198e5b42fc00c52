"""Gradients in buckets: the same updates, fewer messages."""

import mxnet as mx
import numpy as np
import pytest
from mxnet.gluon import nn

from launching import TRAIN, launch
from trainers import buckets
from trainers.buckets import Buckets, _group
from trainers.lookahead import Lookahead
from trainers.worker_trainer import WorkerTrainer

TIME_BUDGET_S = 40
SIZES = (3, 200, 5, 70, 2)


def trained(bucket_bytes=None, num_devices=2, steps=3):
    """Train a small network in buckets, or with MXNet's Trainer; return parameters and buckets."""
    mx.random.seed(0)
    ctx = [mx.cpu(i) for i in range(num_devices)]
    net = nn.HybridSequential(prefix="net_")
    with net.name_scope():
        for width, width_in in zip(SIZES[1:], SIZES):
            net.add(nn.Dense(width, in_units=width_in))
    net.initialize(mx.init.Xavier(), ctx=ctx)
    params, store = net.collect_params(), mx.kv.create("device")
    sgd, exchange = mx.optimizer.SGD(learning_rate=0.1, momentum=0.9), None
    if bucket_bytes is None:
        trainer = mx.gluon.Trainer(params, sgd, None, store, update_on_kvstore=False)
    else:
        exchange = Buckets(params, bucket_bytes)
        trainer = WorkerTrainer(params, sgd, lambda step: 0.1, store, exchange)
    for step in range(steps):
        with mx.autograd.record():
            losses = [
                (net(mx.nd.ones((4, 3), c) * (step + i)) ** 2).sum() for i, c in enumerate(ctx)
            ]
        mx.autograd.backward(losses)
        trainer.step(4)
    return [p.data(c).asnumpy() for p in net.collect_params().values() for c in ctx], exchange


@pytest.mark.parametrize("bucket_bytes", [0, 1000, 1 << 20])
def test_buckets_of_any_size_make_the_updates_of_messages_for_each_parameter(bucket_bytes):
    plain, _ = trained()
    ours, exchange = trained(bucket_bytes)
    for x, y in zip(plain, ours):
        np.testing.assert_array_equal(x, y)
    wanted = {0: 8, 1000: 3, 1 << 20: 1}
    assert len(exchange._buckets) == wanted[bucket_bytes]


def test_a_bucket_is_full_when_it_has_its_bytes_and_keeps_the_order_of_the_layers():
    params = [mx.gluon.Parameter(f"p{i}", shape=(size,)) for i, size in enumerate((10, 300, 20, 5))]
    for param in params:
        param.initialize()
    params[1].dtype = "float32"  # the same type by another name
    groups = _group(params, 1000)
    assert [[param.name for param in group] for group in groups] == [["p0"], ["p1", "p2", "p3"]]


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
    _, exchange = trained(bucket_bytes)
    places = {id(x): place for place, bucket in enumerate(exchange._buckets) for x in bucket}
    real, seen = exchange._store.pushpull, []

    def let_pass(before, array):
        assert places[id(before)] == len(exchange._buckets) - 1
        assert before.context == array.context
        seen.append(f"{places[id(array)]} waits")

    def pushpull(key, value, **others):
        seen.append(f"send {key - exchange._first_key}")
        real(key, value, **others)

    monkeypatch.setattr(buckets, "_let_pass", let_pass)
    monkeypatch.setattr(exchange, "_lets_pass", True)
    monkeypatch.setattr(exchange._store, "pushpull", pushpull)
    exchange.add_up()
    once = [event for place, event in enumerate(seen) if event not in seen[:place]]
    assert ", ".join(once) == events and len(seen) - len(once) == events.count("waits")  # 2 devices


def test_lookahead_ends_at_the_average_it_took_on_the_way():
    param = mx.gluon.Parameter("p", shape=(1,))
    param.initialize()
    lookahead = Lookahead([param], period=2, num_steps=5)
    for step, value in enumerate((1.0, 2.0, 3.0, 4.0, 5.0), 1):
        param.set_data(mx.nd.array([value]))
        lookahead.step(step)
    kept = 0.95**2 * (4 / 5) ** 3  # at step 4; step 2 begins the average, step 5 ends at it
    assert param.data().asscalar() == pytest.approx(kept * 2 + (1 - kept) * 4)


def test_lookahead_goes_by_the_step_also_where_there_were_more_updates():
    """As in a training that goes on with larger batches: its optimizer has counted smaller ones."""
    param = mx.gluon.Parameter("p", shape=(1,))
    param.initialize(mx.init.One())
    lookahead = Lookahead([param], period=2, num_steps=6)
    trainer = WorkerTrainer([param], mx.optimizer.SGD(learning_rate=0.5), lambda step: 0.1)
    trainer.lookahead = lookahead
    trainer.optimizer.begin_num_update = 700
    weight, average = 1.0, None
    for number in range(1, 7):
        with mx.autograd.record():
            loss = param.data().sum()
        loss.backward()
        trainer.step(1)
        weight -= 0.1
        if number % 2 == 0:
            kept = 1 if number == 6 else 0.95**2 * (number / 6) ** 3
            average = weight if average is None else kept * average + (1 - kept) * weight
            weight = average
        assert param.data().asscalar() == pytest.approx(weight)
    assert trainer.optimizer.num_update == 706


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


@pytest.mark.long
@pytest.mark.parametrize("option", ["--kv-store dist_async", "--gc-type 2bit"])
def test_what_p3_cannot_do_is_one_line_and_status_2(option, tmp_path):
    job = launch(tmp_path, "-n", 1, "--p3", *TRAIN, "--data", "synthetic", *option.split())
    assert job.status == 2
    assert f"{option} does not go with the launcher's --p3" in job.stderr + job.stdout
