"""The checks of notebook 02: a step in pieces, a stranger's log, a prediction of memory."""

import mxnet as mx
import numpy as np
from device_memory import count_bytes, output_bytes
from mxnet import autograd, gluon
from mxnet.gluon import nn

import helpers  # knows where the next module is
from checks import exercise, fault_of_type, function

loss = gluon.loss.SoftmaxCrossEntropyLoss()

STRANGERS_PROGRAM = """\
for x, y in batches:
    busy = ctx[: len(x)]                                   # (a)
    xs = split_and_load(x, busy, even_split=False)         # (b)
    ys = split_and_load(y, busy, even_split=False)
    with autograd.record():
        losses = [loss(net(x), y) for x, y in zip(xs, ys)]
    autograd.backward(losses)                              # (c)
    trainer.step(len(x), ignore_stale_grad=True)           # (d)
"""
STRANGERS_LOG = """\
step 0  parts 32 32 32  loss  2.294  norms of the weights 3.904 3.904 3.904
step 1  parts 32 32 32  loss  2.248  norms of the weights 3.903 3.903 3.903
step 2  parts 32 32 32  loss  2.154  norms of the weights 3.904 3.904 3.904
step 3  parts 1 1       loss  2.059  norms of the weights 4.025 4.025 3.904
step 4  parts 32 32 32  loss  1.677  norms of the weights 4.027 4.027 3.905
step 5  parts 32 32 32  loss  1.575  norms of the weights 4.028 4.028 3.906
step 6  parts 32 32 32  loss  1.315  norms of the weights 4.032 4.032 3.909
step 7  parts 1 1       loss  0.218  norms of the weights 4.340 4.340 3.909
"""


@exercise("02", 1, like=function)
def check_pieces(step_in_pieces):
    """Compare with one device that sees the whole batch, and watch how much goes in at once."""
    devices = [mx.cpu(0), mx.cpu(1)]
    for size, num_pieces in ((48, 3), (50, 5)):
        images = mx.nd.random.uniform(shape=(size, 6))
        labels = mx.nd.arange(size) % 4
        try:
            fault = _fault_of_two_steps(step_in_pieces, images, labels, devices, num_pieces)
        except Exception as error:
            lines = [line for line in str(error).splitlines() if line.strip()] or [""]
            return f"it raised {type(error).__name__}: {lines[-1]}"
        if fault:
            return f"{size} images in {num_pieces} pieces: {fault}"
    return ""


def _fault_of_two_steps(step_in_pieces, images, labels, devices, num_pieces):
    """Take two steps in pieces, and the same with one device; return a hint, or None."""
    net, whole = _net(devices), _net(devices[:1])
    trainer, judge = _trainer(net), _trainer(whole)
    seen = []  # for each forward pass: images, and the device's gradient as it was then

    def note(block, inputs, output):
        device = inputs[0].context
        gradient = net[1].bias.grad(device).asnumpy().tobytes()
        seen.append((len(inputs[0]), str(device), gradient))

    net.register_forward_hook(note)
    for _ in range(2):
        seen.clear()
        step_in_pieces(net, trainer, images.copy(), labels.copy(), devices, num_pieces)
        with autograd.record():
            loss(whole(images), labels).backward()
        judge.step(len(images))
        most = -(-len(images) // num_pieces // len(devices))
        if sum(n for n, *_ in seen) != len(images):
            return f"the network saw {sum(n for n, *_ in seen)} images"
        if max(n for n, *_ in seen) > most:
            return f"a device saw {max(n for n, *_ in seen)} images at once; {most} would do"
        right = _weights(whole, devices[0])
        if not all(np.allclose(_weights(net, d), right, 0, 1e-6) for d in devices):
            return "the weights differ: add up over the pieces, from zero; then one step"
        if len({(device, gradient) for _, device, gradient in seen}) < len(seen):
            return "a piece goes forward before the one before it has gone backward"
    return None


@exercise("02", 2)
def check_log(answer):
    """Take the first wrong step, the idle device, and the letter of the line to blame."""
    try:
        step, device, line = answer
    except (TypeError, ValueError):
        return "give a step, the number of a device, and a letter"
    fault = fault_of_type(step, 3) or fault_of_type(device, 2) or fault_of_type(line, "d")
    if fault:
        return fault
    if step != 3:
        return "from which step on do the devices hold different weights?"
    if device != 2:
        return "which device has no part of that batch, and keeps its weights?"
    hint = "a device without an example should raise; which line keeps it quiet?"
    return "" if line.strip("()").lower() == "d" else hint


@exercise("02", 3, like=function)
def check_memory(predict):
    """Compare with the bytes that a real training keeps on its first device."""
    for optimizer, units, num_images, num_devices in (
        ("sgd", (16,), 12, 2),
        ("nag", (32, 8), 11, 2),
        ("adam", (24, 24, 5), 10, 3),
    ):
        devices = [mx.cpu(i) for i in range(num_devices)]
        net = _net(devices, units)
        options = {"momentum": 0.9} if optimizer == "nag" else {}
        trainer = _trainer(net, optimizer, **options)
        parts = gluon.utils.split_and_load(mx.nd.ones((num_images, 6)), devices, even_split=False)
        with autograd.record():
            outputs = [net(part) for part in parts]
        autograd.backward(outputs)
        trainer.step(num_images)
        kept = sum(places.get("cpu(0)", 0) for places in count_bytes(net, trainer).values())
        kept += output_bytes(net, parts[0].shape)
        numbers = sum(p.data(devices[0]).size for p in net.collect_params().values())
        states = {"sgd": 0, "nag": 1, "adam": 2}[optimizer]
        arguments = numbers, states, output_bytes(net, (1, 6)), num_images, num_devices
        try:
            got = predict(*arguments)
        except Exception as error:
            return f"it raised {type(error).__name__}: {error}"
        if got != kept:
            job = f"{numbers} weights, {states} state(s) each, {arguments[2]} bytes of outputs an"
            job += f" example, {num_images} examples on {num_devices} devices"
            return f"{job}: {kept} bytes were counted, you predict {got}"
    return ""


def _net(devices, units=(8,)):
    mx.random.seed(3)
    net = nn.HybridSequential()
    for number in units:
        net.add(nn.Dense(number, activation="tanh"))
    net.add(nn.Dense(4))
    net.infer_shape(mx.nd.zeros((1, 6)))
    net.initialize(mx.init.Xavier(), ctx=devices)
    return net


def _trainer(net, optimizer="sgd", **options):
    options = {"learning_rate": 0.1, **options}
    return gluon.Trainer(net.collect_params(), optimizer, options, update_on_kvstore=False)


def _weights(net, device):
    return np.concatenate([p.data(device).asnumpy().ravel() for p in net.collect_params().values()])
