"""A step: the same on one device and on several, whatever the batch, and as written by hand."""

from gluon_dist.checkpoint.contents import Contents
from gluon_dist.checkpoint.statistics import gather_statistics, mean_statistics
from gluon_dist.workers.statistics import average_statistics
from gluon_dist.workers.workers import Workers

import mxnet as mx
import numpy as np
import pytest
from mxnet import autograd
from mxnet.contrib.amp.loss_scaler import LossScaler
from mxnet.gluon import nn

from loader import Batch, EvalLoader, TrainLoader
from networks.by_name import get_network, starts_with_batchnorm
from run.trainer import PlannedTrainer
from training import CrossEntropy, evaluate, forward_backward, split_batch

TIME_BUDGET_S = 35
RNG = np.random.RandomState(0)
IMAGES = RNG.randint(0, 256, (46, 3, 8, 8)).astype(np.uint8)
LABELS = RNG.randint(0, 4, 46)


def small_network(ctx, seed=0):
    """A convolution network without BatchNorm and dropout."""
    mx.random.seed(seed)
    with mx.name.NameManager():
        net = nn.HybridSequential()
        net.add(nn.Conv2D(8, 3, activation="relu", in_channels=3), nn.MaxPool2D())
        net.add(nn.Dense(16, activation="relu", in_units=72), nn.Dense(4, in_units=16))
    net.initialize(mx.init.Xavier(), ctx=ctx)
    net.hybridize(static_alloc=True, static_shape=True)
    return net


def create_trainer(net, lr, store=None, optimizer="sgd"):
    """Create a Trainer that adds up the gradients of the devices of this process."""
    optimizer, store = mx.optimizer.create(optimizer), store or mx.kv.create("local")
    return PlannedTrainer(net.collect_params(), optimizer, store, schedule=lambda step: lr)


def train_on(batch, net, loss, trainer, ctx):
    """Take a step, as the training program does."""
    divisor = batch.global_size / trainer.loss_scale
    forward_backward(net, loss, *split_batch(batch, ctx), divisor)
    trainer.step(1)


def train_steps(num_devices, kvstore, steps=10, batch_size=8, optimizer="adam"):
    """Train the small network, short last batches too; return its parameters on every device."""
    ctx = [mx.cpu(i) for i in range(num_devices)]
    net, loss = small_network(ctx), CrossEntropy()
    store = mx.kv.create(kvstore) if num_devices > 1 else None
    trainer = create_trainer(net, 0.01, store, optimizer)
    taken = 0
    while taken < steps:
        for batch in TrainLoader(IMAGES, LABELS, batch_size).epoch(taken):
            train_on(batch, net, loss, trainer, ctx)
            taken += 1
    params = net.collect_params().items()
    return [{n: p.data(c).asnumpy() for n, p in params} for c in ctx]


@pytest.mark.parametrize("kvstore", ["local", "device"])
@pytest.mark.parametrize("num_devices", [2, 3, 4])
def test_several_devices_give_the_parameters_of_one_after_ten_steps(kvstore, num_devices):
    (one,) = train_steps(1, kvstore)
    for params in train_steps(num_devices, kvstore):
        for name, values in params.items():
            np.testing.assert_allclose(values, one[name], atol=1e-5, err_msg=name)


def set_scale(trainer, scale):
    """As MXNet's `amp.init_trainer` leaves it, and some steps."""
    trainer._amp_loss_scaler = LossScaler()
    vars(trainer._amp_loss_scaler).update(_loss_scale=scale, _next_loss_scale=scale)


def test_gradients_of_float16_are_scaled_and_divided_by_the_scale_on_every_worker():
    """Without a GPU, where float16 trains: its loss scale alone, on a network in float32."""
    ctx, found = [mx.cpu()], []
    for scale in (None, 8.0, 1024.0):
        net = small_network(ctx)
        trainer = create_trainer(net, 0.1)
        if scale:
            set_scale(trainer, scale)
        for batch in TrainLoader(IMAGES, LABELS, 20).epoch(0):
            train_on(batch, net, CrossEntropy(), trainer, ctx)
        found.append(net[3].weight.data().asnumpy())
    for weights in found[1:]:
        np.testing.assert_allclose(weights, found[0], rtol=1e-5, atol=1e-7)
    # Another scale, which the others use in a step in which this worker has no example.
    set_scale(trainer, 2048.0)
    train_on(Batch(None, None, 1), net, CrossEntropy(), trainer, ctx)
    assert trainer.optimizer.rescale_grad == 1 / 2048


def test_an_update_that_float16_skips_leaves_no_gradient_for_the_next_step():
    ctx = [mx.cpu()]
    net = small_network(ctx)
    trainer = create_trainer(net, 0.1)
    trainer._amp_loss_scaler = LossScaler()
    (batch,) = TrainLoader(IMAGES[:8], LABELS[:8], 8).epoch(0)
    before = net[3].weight.data().asnumpy()
    trainer._amp_loss_scaler.has_overflow = lambda params: True
    train_on(batch, net, CrossEntropy(), trainer, ctx)
    np.testing.assert_array_equal(net[3].weight.data().asnumpy(), before)  # skipped
    assert net[3].weight.grad().asnumpy().any()
    train_on(Batch(None, None, 1), net, CrossEntropy(), trainer, ctx)
    assert not net[3].weight.grad().asnumpy().any()


def test_devices_without_an_example_stay_in_step():
    # 46 examples in batches of 9 leave one: seven of eight devices have none of it.
    (one,) = train_steps(1, "device", steps=6, batch_size=9)
    for params in train_steps(8, "device", steps=6, batch_size=9):
        for name, values in params.items():
            np.testing.assert_allclose(values, one[name], atol=1e-5, err_msg=name)


def test_gradients_are_those_of_the_mean_loss_by_finite_differences():
    ctx = [mx.cpu(0), mx.cpu(1)]
    net, loss = small_network(ctx), CrossEntropy()
    data, labels = mx.nd.array(IMAGES[:6] / 255.0), mx.nd.array(LABELS[:6])
    parts = [[x[:4], x[4:].as_in_context(ctx[1])] for x in (data, labels)]
    forward_backward(net, loss, *parts, 6)
    bias = net[3].bias  # behind it all is smooth
    summed, kept = sum(bias.grad(c).asnumpy() for c in ctx), bias.data(ctx[0]).copy()

    def loss_at(i, moved):
        bias.data(ctx[0])[:] = kept + moved * mx.nd.one_hot(mx.nd.array([i]), 4)[0]
        with autograd.train_mode():
            return loss(net(data), labels).mean().asscalar()

    slopes = [(loss_at(i, 1e-2) - loss_at(i, -1e-2)) / 2e-2 for i in range(4)]
    assert summed == pytest.approx(slopes, abs=1e-4)


def test_smoothed_loss_is_the_cross_entropy_with_the_smoothed_target():
    scores, label = RNG.randn(5, 4).astype("float32"), np.array([0, 1, 2, 3, 0])
    target = np.full((5, 4), 0.2 / 4)
    target[np.arange(5), label] += 0.8
    log_p = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
    got = CrossEntropy(0.2)(mx.nd.array(scores), mx.nd.array(label)).asnumpy()
    np.testing.assert_allclose(got, -(target * log_p).sum(axis=1), rtol=1e-5)


@pytest.mark.parametrize("num_devices", [1, 3])
def test_evaluation_counts_every_example_once(num_devices):
    ctx = [mx.cpu(i) for i in range(num_devices)]
    net = small_network(ctx)
    scores = net(mx.nd.array(IMAGES / 255.0)).asnumpy()
    order = np.argsort(-scores, axis=1)
    log_p = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
    got = evaluate(EvalLoader(IMAGES, LABELS, 7), net, ctx, top_k=2)
    assert got["num_examples"] == 46
    assert got["accuracy"] == np.mean(order[:, 0] == LABELS)
    assert got["top_k_accuracy"] == np.mean((order[:, :2] == LABELS[:, None]).any(axis=1))
    assert got["loss"] == pytest.approx(-log_p[np.arange(46), LABELS].mean(), rel=1e-5)


def test_the_loss_of_sure_answers_is_exact_too():
    ctx = [mx.cpu()]
    net = nn.HybridSequential()
    net.add(nn.Flatten(), nn.Dense(4, in_units=4))
    net.initialize(ctx=ctx)
    net[1].weight.set_data(mx.nd.eye(4) * 8)  # one score of 8, three of 0, or less
    images = (np.eye(4) * 255).astype(np.uint8).reshape(4, 1, 2, 2)
    loader = EvalLoader(images, np.arange(4), 3)
    got = evaluate(loader, net, ctx)
    scores = net(mx.nd.array(images / 255.0)).asnumpy().astype("float64")
    wanted = np.mean(np.log(np.exp(scores).sum(axis=1)) - scores[np.arange(4), np.arange(4)])
    assert wanted < 0.002
    np.testing.assert_allclose(got["loss"], wanted, rtol=1e-6)


def read_by_averaging(net):
    average_statistics(net, Workers(mx.kv.create("local")))
    return net[1].running_mean.data().asnumpy()


def read_by_gathering(net):
    rows = gather_statistics(net, Workers(mx.kv.create("local")))
    assert (mean_statistics(net, rows)[net[1].running_mean.name].asnumpy() == rows[0, 0, :4]).all()
    return rows[0, 0, :4]


def read_by_saving(net):
    contents = Contents({"": net}, {}, Workers(mx.kv.create("local")))
    params, _, _ = contents.collect(is_within_epoch=False, is_wanted=True)
    return params["1.running_mean"].asnumpy()


@pytest.mark.parametrize("read", [read_by_averaging, read_by_gathering, read_by_saving])
def test_statistics_are_those_after_the_last_step_however_long_its_backward_takes(read):
    net = nn.HybridSequential()
    net.add(nn.Conv2D(4, 3, in_channels=3), nn.BatchNorm(in_channels=4))
    net.add(nn.Conv2D(64, 3), *(nn.Conv2D(64, 3, padding=1) for _ in range(8)), nn.Dense(4))
    net.initialize(mx.init.Xavier())
    net.hybridize(static_alloc=True, static_shape=True)
    data, labels = mx.nd.array(IMAGES[:40] / 255.0), mx.nd.array(LABELS[:40])
    data = data.tile((1, 1, 3, 3))
    for _ in range(3):
        forward_backward(net, CrossEntropy(), [data], [labels], 40)
    mean = read(net)
    wanted = net[0](data).mean(axis=(0, 2, 3)).asnumpy() * (1 - 0.9**3)
    np.testing.assert_allclose(mean, wanted, rtol=1e-3, atol=1e-6)


def test_statistics_of_a_first_batchnorm_move_and_devices_agree_on_them():
    ctx = [mx.cpu(0), mx.cpu(1)]
    net = get_network("resnet", 4, (3, 8, 8), ctx, num_layers=8)
    assert starts_with_batchnorm(net)
    trainer = create_trainer(net, 0.0, mx.kv.create("device"))
    data = mx.nd.array(IMAGES[:40] / 255.0)
    for _ in range(60):  # a momentum of 0.9 forgets where it started
        train_on(Batch(data, mx.nd.array(LABELS[:40]), 40), net, CrossEntropy(), trainer, ctx)
    average_statistics(net, Workers(mx.kv.create("local")))
    mean = next(p for n, p in net.collect_params().items() if n.endswith("batchnorm0_running_mean"))
    wanted = data.asnumpy().mean(axis=(0, 2, 3))
    for device in ctx:
        np.testing.assert_allclose(mean.data(device).asnumpy(), wanted, atol=5e-3)
    assert not starts_with_batchnorm(small_network(ctx))
