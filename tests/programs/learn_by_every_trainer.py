"""Train small networks by ``gd.Trainer`` in every setting; argv: kvstore, file for results.

Each worker begins with weights of its own, and worker 0's must win. The parts of a batch are
uneven, and some are empty. Worker 0 writes the parameters that each setting ends with; whether all
devices of all workers have them is seen here. The oracle is in ``tests/exchange/test_trainer.py``.
"""

import os
import sys

import gluon_dist as gd
from gluon_dist.common.failure import exit_with
from gluon_dist.exchange.buckets import Buckets

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon
from mxnet.contrib import amp
from mxnet.gluon import nn
from mxnet.gluon.contrib.estimator import Estimator, GradientUpdateHandler

SIZES = (6, 7, 1, 5, 2, 6, 1, 7)  # examples of all workers in each step
ALL = range(len(SIZES))
RNG = np.random.RandomState(7)
X, Y, Z = (RNG.normal(size=(sum(SIZES), n)).astype("float32") for n in (4, 3, 2))
HUGE = 5  # in this step amp overflows, or the update is left out; some have no example after it
FROZEN = (4, 7), (0, 3)  # the steps in which the first layer, and the last one, are frozen
MAX_NORM = 0.7
SMALL = -0.2, -0.06, 0, 0.01, 0.15, 0.24  # twice as large, below the threshold of two bits
WAYS = {  # devices of a worker; whether through servers; whether shapes are known
    "shared": (1, False, True),
    "servers": (1, True, False),
    "devices": (2, False, False),
}


class Servers(gd.Trainer):
    """Whose gradients go through the store, also on one host."""

    def _choose_exchange(self):
        return Buckets()


class First(mx.init.Initializer):
    """Weights that depend on the worker and the shape."""

    def _init_default(self, _, array):
        array[:] = first(array.shape, gd.rank())

    _init_weight = _init_bias = _init_default


class Falling(mx.lr_scheduler.LRScheduler):
    """A scheduler of the user's own."""

    def __call__(self, num_update):
        return rate(max(num_update, 1) - 1)  # an Estimator asks before the first update


class Own(mx.optimizer.Optimizer):
    """An optimizer of the user's own: the average of squares, and what it would be without it."""

    def create_state(self, index, weight):
        return mx.nd.zeros_like(weight), mx.nd.zeros_like(weight)

    def update(self, index, weight, grad, state):
        self._update_count(index)
        squares, largest = state
        grad = grad * self.rescale_grad
        squares[:] = 0.8 * squares + 0.2 * grad**2
        largest[:] = mx.nd.maximum(largest, squares)
        weight[:] -= self._get_lr(index) * grad / (0.1 + largest.sqrt())


def first(shape, rank):
    return np.random.RandomState([rank, *shape]).normal(scale=0.5, size=shape)


def rate(step):
    return 0.1 / (1 + step)


class Setting:
    """A way to train: its devices, its parts of batches, its networks and Trainers."""

    def __init__(self, way):
        devices, self._through_servers, self.is_known = WAYS[way]
        self.ctx = [mx.cpu(i) for i in range(devices)]

    def dense(self, units, inputs, **options):
        inputs = {"in_units": inputs} if self.is_known else {}
        return nn.Dense(units, bias_initializer=First(), **inputs, **options)

    def net(self):
        net = nn.HybridSequential()
        net.add(self.dense(5, 4, activation="tanh"), self.dense(3, 5))
        return self.begun(net)

    def begun(self, net):
        net.initialize(First(), ctx=self.ctx)
        net.hybridize(static_alloc=self.is_known)
        return net

    def trainer(self, net, *options, **more):
        kind = Servers if self._through_servers else gd.Trainer
        params = net if isinstance(net, (list, dict)) else net.collect_params()
        return kind(params, *options, **more)

    def parts(self, step, *arrays):
        """Yield for each device with examples its rows, and them as arrays there."""
        stop = sum(SIZES[: step + 1])
        mine = np.arange(stop - SIZES[step], stop)[(gd.rank() + step) % gd.size() :: gd.size()]
        for number, ctx in enumerate(self.ctx):
            rows = mine[number :: len(self.ctx)]
            if len(rows):
                yield rows, [mx.nd.array(array[rows], ctx=ctx) for array in arrays]

    def backward(self, net, step, targets=Y, divisor=1):
        with autograd.record():
            losses = [loss(net(x), y) / divisor for _, (x, y) in self.parts(step, X, targets)]
        gd.backward(losses)


def loss(output, target):
    return ((output - target) ** 2).sum() / 2


def learn(setting, net, trainer, steps=ALL, divides=False):
    for step in steps:
        trainer.set_learning_rate(rate(step))
        setting.backward(net, step, divisor=SIZES[step] if divides else 1)
        trainer.step(1 if divides else SIZES[step])
    return net


def plain(optimizer, **options):
    def train(setting):
        net = setting.net()
        return learn(setting, net, setting.trainer(net, optimizer, options))

    return train


def scheduled(setting):
    net = setting.net()
    trainer = setting.trainer(net, "sgd", {"momentum": 0.9, "lr_scheduler": Falling()})
    for step, size in enumerate(SIZES):
        setting.backward(net, step)
        trainer.step(size)
    return net


def own(setting):
    net = setting.net()
    return learn(setting, net, setting.trainer(net, Own()))


def pair(setting):
    """A GAN's two networks; what the second one's step leaves in the first one is not its own."""
    judge, maker = (setting.begun(setting.dense(*shape)) for shape in ((1, 4), (4, 2)))
    trainers = setting.trainer(judge, "adam"), setting.trainer(maker, "sgd", {"momentum": 0.5})
    for step, size in enumerate(SIZES):
        for phase, trainer in enumerate(trainers):
            trainer.set_learning_rate(rate(step))
            with autograd.record():
                losses = []
                for _, (x, z) in setting.parts(step, X, Z):
                    made = judge(maker(z))
                    if phase == 0:
                        losses.append(loss(judge(x), 1) + loss(judge(maker(z).detach()), 0))
                    else:
                        losses.append(loss(made, 1))
            gd.backward(losses)
            trainer.step(size)
    return judge, maker


def clipped(setting):
    net = setting.net()
    trainer = setting.trainer(net, "sgd", {"momentum": 0.9})
    for step, size in enumerate(SIZES):
        trainer.set_learning_rate(rate(step))
        setting.backward(net, step)
        trainer.allreduce_grads()
        clip(net, setting.ctx, MAX_NORM * size)
        if step != HUGE:  # as if it were not finite
            trainer.update(size)
    return net


def clip(net, ctx, norm):
    for device in ctx:
        grads = [param.grad(device) for param in net.collect_params().values()]
        gluon.utils.clip_global_norm(grads, norm)


def branched(setting, **options):
    """A second layer that only some examples, of some workers, in some steps go through."""
    body, head = (setting.begun(setting.dense(*shape)) for shape in ((3, 4), (3, 3)))
    params = {**body.collect_params(), **head.collect_params()}
    options = options or {"lr_scheduler": Falling()}
    trainer = setting.trainer(params, "sgd", {"momentum": 0.9, "wd": 0.1, **options})
    for step, size in enumerate(SIZES):
        with autograd.record():
            losses = []
            for rows, (x, y) in setting.parts(step, X, Y):
                for row, one, wanted in zip(rows, x.split(len(rows), 0, False), y):
                    one = one if len(rows) > 1 else x
                    output = body(one.reshape((1, 4)))
                    losses.append(loss(head(output) if through_head(row) else output, wanted))
        gd.backward(losses)
        trainer.step(size, ignore_stale_grad=True)
    return body, head


def through_head(row):
    return row < 6 or row % 5 == 0


def added(setting):
    """Each batch comes in two pieces, whose gradients are added."""
    net = setting.net()
    net.collect_params().setattr("grad_req", "add")
    trainer = setting.trainer(net, "sgd", {"momentum": 0.9})
    for step in range(0, len(SIZES), 2):
        trainer.set_learning_rate(rate(step))
        setting.backward(net, step)
        setting.backward(net, step + 1)
        trainer.step(SIZES[step] + SIZES[step + 1])
        net.collect_params().zero_grad()
    return net


def frozen(setting):
    """The last layer is frozen from the start, the first one later."""
    net = setting.net()
    layers = [layer.collect_params() for layer in net]
    layers[1].setattr("grad_req", "null")  # before the Trainer is there
    trainer = setting.trainer(net, "sgd", {"momentum": 0.9, "wd": 0.1})
    for step, size in enumerate(SIZES):
        for layer, (start, stop), last in zip(layers, FROZEN, ("write", "add")):
            if step == start:
                layer.setattr("grad_req", "null")
            if step == stop:
                layer.setattr("grad_req", last)
        trainer.set_learning_rate(rate(step))
        setting.backward(net, step)
        trainer.step(size)
        net.collect_params().zero_grad()
    return net


def scaled(setting, unscales=False):
    """Amp scales the loss; in one step it overflows, on the worker that has the first example."""
    net = setting.net()
    trainer = setting.trainer(net, "sgd", {"momentum": 0.9})
    amp.init(target_precision_ops=[], conditional_fp32_ops=[], fp32_ops=[])
    amp.init_trainer(trainer)
    for step, size in enumerate(SIZES):
        targets = Y.copy()
        if step == HUGE:
            targets[sum(SIZES[:step])] = 1e38
        trainer.set_learning_rate(rate(step))
        with autograd.record():
            losses = [loss(net(x), y) for _, (x, y) in setting.parts(step, X, targets)]
            with amp.scale_loss(losses, trainer) as products:
                gd.backward(products)
        if unscales:
            trainer.allreduce_grads()
            amp.unscale(trainer)
            if step != HUGE:
                clip(net, setting.ctx, MAX_NORM * size)
            trainer.update(size)
        else:
            trainer.step(size)
    assert trainer.loss_scale == 2**15
    return net


def unscaled(setting):
    return scaled(setting, unscales=True)


def went_on(setting):
    """Halfway all is saved, and loaded into another network by another Trainer."""
    name, half = f"{sys.argv[2]}-{gd.rank()}", len(SIZES) // 2
    net = setting.net()
    trainer = setting.trainer(net, "adam")
    learn(setting, net, trainer, range(half))
    trainer.save_states(f"{name}.states")
    net.save_parameters(f"{name}.params")
    for place in ("before", "after"):
        other = setting.net()
        if place == "before":
            other.load_parameters(f"{name}.params", ctx=setting.ctx)
        second = setting.trainer(other, "adam")
        second.load_states(f"{name}.states")
        if place == "after":
            other.load_parameters(f"{name}.params", ctx=setting.ctx)
        learn(setting, other, second, range(half, len(SIZES)))
    learn(setting, net, trainer, range(half, len(SIZES)))
    for theirs, ours in zip(parameters(other, setting), parameters(net, setting)):
        np.testing.assert_allclose(theirs, ours, rtol=1e-5, atol=1e-6)  # servers add as it arrives
    os.remove(f"{name}.states")
    os.remove(f"{name}.params")
    return other


def named_otherwise(setting):
    """Gluon numbers layers; with two digits they are sorted otherwise than with one."""
    with mx.name.NameManager():
        for _ in range(9 if gd.rank() else 0):
            nn.Dense(1)
        net = setting.net()
        return learn(setting, net, setting.trainer(net, "sgd", {"momentum": 0.9}))


def begun_again(setting):
    """Another optimizer for the second half, and weights that are drawn again before."""
    net = setting.net()
    learn(setting, net, setting.trainer(net, "adam"), range(2))
    trainer = setting.trainer(net, "sgd", {"momentum": 0.9})
    net.initialize(First(), ctx=setting.ctx, force_reinit=True)
    return learn(setting, net, trainer)


def both(setting):
    """Two Trainers of the layers of one network, after one backward pass."""
    net = setting.net()
    trainers = [setting.trainer(layer, "sgd", {"momentum": m}) for layer, m in zip(net, (0.9, 0))]
    for step, size in enumerate(SIZES):
        setting.backward(net, step)
        for trainer in trainers:
            trainer.set_learning_rate(rate(step))
            trainer.step(size)
    return net


class StepOfAll(GradientUpdateHandler):
    """Of an Estimator; its own one divides by the examples of this worker."""

    def batch_end(self, estimator, *args, loss, **kwargs):
        estimator.trainer.step(gd.all_reduce(sum(len(part) for part in loss)))


def estimated(setting):
    """Two epochs of two even batches: an Estimator takes no empty part."""
    net = setting.net()
    trainer = setting.trainer(net, "sgd", {"momentum": 0.9, "lr_scheduler": Falling()})
    estimator = Estimator(net, gluon.loss.L2Loss(), trainer=trainer, context=setting.ctx)
    estimator.logger.disabled = True
    loader = gd.DataLoader(gluon.data.ArrayDataset(X[:24], Y[:24]), 12, shuffle=False)
    estimator.fit(loader, epochs=2, event_handlers=[StepOfAll()])
    return net


def inferred_first(setting):
    """On a CPU inference moves weights into a layout of its own, before the Trainer shares them."""
    net = nn.Conv2D(16, 3, in_channels=16 if setting.is_known else 0, bias_initializer=First())
    setting.begun(net)
    for ctx in setting.ctx:
        net(mx.nd.ones((2, 16, 8, 8), ctx=ctx))
    setting.trainer(net, "sgd")
    return net


def compressed(divides):
    def train(setting):
        net, options = setting.net(), {"compression_params": {"type": "fp16"}}
        trainer = gd.Trainer(net.collect_params(), "sgd", {"momentum": 0.9}, **options)
        return learn(setting, net, trainer, divides=divides)

    return train


def compressed_clipped(setting):
    """The first sums of a batch of 60, before the Trainer knows that it will divide by 60."""
    net, options = setting.net(), {"compression_params": {"type": "fp16"}}
    trainer = gd.Trainer(net.collect_params(), "sgd", **options)
    for step, size in enumerate(SIZES):
        trainer.set_learning_rate(rate(step))
        setting.backward(net, step, divisor=1 / 60)
        trainer.allreduce_grads()
        trainer.update(size * 60)
    return net


SETTINGS = {
    "sgd": plain("sgd", momentum=0.9, wd=0.1),
    "nag": plain("nag", momentum=0.9, wd=0.1),
    "adam": plain("adam"),
    "adam-wd": plain("adam", wd=0.1),
    "scheduled": scheduled,
    "own": own,
    "pair": pair,
    "clipped": clipped,
    "branched": branched,
    "added": added,
    "frozen": frozen,
    "scaled": scaled,
    "unscaled": unscaled,
    "went-on": went_on,
    "named-otherwise": named_otherwise,
    "begun-again": begun_again,
    "both": both,
    "estimated": estimated,
    "inferred-first": inferred_first,
}
COMPRESSED = {
    "fp16": compressed(False),
    "fp16-divided": compressed(True),
    "fp16-clipped": compressed_clipped,
}


def parameters(nets, setting):
    """Return the parameters, layer by layer, which all devices of all workers have."""
    nets = nets if isinstance(nets, tuple) else (nets,)
    mx.nd.waitall()
    found = []
    for param in (param for net in nets for param in net.collect_params().values()):
        copies = [data.asnumpy() for data in param.list_data()]
        rows = gd.all_gather(copies[0])
        assert all((copy == rows).all() for copy in copies), (param.name, rows)
        found.append(copies[0])
    return found


def refusals():
    """Return what is refused after gradients in two bits, or where workers differ."""
    net = nn.Dense(1, in_units=6)
    net.initialize()
    layer = nn.Dense(1, in_units=1 + gd.rank(), prefix="differs_")
    layer.initialize()
    half = {"compression_params": {"type": "fp16"}}
    ways = (net, half, 0), (net, two_bit_options(0.25), 0), (layer, {}, 0), (net, {}, 1)
    found = []
    for block, options, is_numpy in ways:
        try:
            with mx.util.np_array(is_numpy):
                gd.Trainer(block.collect_params(), "sgd", **options)
        except ValueError as error:
            found.append(str(error))
    return found


def two_bit_options(threshold):
    return {"compression_params": {"type": "2bit", "threshold": threshold}}


def two_bits():
    """Forty steps with the same gradients: ``SMALL`` on worker 0, and twice that on worker 1."""
    net = nn.Dense(1, in_units=6, use_bias=False)
    net.initialize(mx.init.Zero())
    options = two_bit_options(0.5)
    trainer = gd.Trainer(net.collect_params(), "sgd", {"learning_rate": 1}, **options)
    mine = mx.nd.array([SMALL]) * (1 + gd.rank())
    for _ in range(40):
        with autograd.record():
            output = net(mine).sum()
        output.backward()
        trainer.step(1)
    return net


def main():
    gd.store(sys.argv[1])
    chosen, found = sys.argv[3:], {}
    for way in WAYS:
        setting = Setting(way)
        for name, train in SETTINGS.items():
            if (chosen and name not in chosen) or (sys.argv[1] == "horovod" and way == "servers"):
                continue
            try:
                found[f"{name}/{way}"] = flat(parameters(train(setting), setting))
            except Exception as error:
                raise RuntimeError(f"{name}/{way}") from error
    if sys.argv[1] == "dist_sync":
        setting = Setting("servers")
        for name, train in COMPRESSED.items():
            if chosen and name not in chosen:
                continue
            found[f"{name}/servers"] = flat(parameters(train(setting), setting))
        if not chosen:
            found["2bit"] = flat(parameters(two_bits(), setting))
            found["2bit-again"] = flat(parameters(two_bits(), setting))
            found["refused"] = refusals()
    if gd.rank() == 0:
        np.savez(sys.argv[2], **found)
    gd.barrier()


def flat(arrays):
    return np.concatenate([array.ravel() for array in arrays])


if __name__ == "__main__":
    exit_with(main, "learn_by_every_trainer.py")
