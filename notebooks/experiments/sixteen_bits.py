"""What the notebook on mixed precision tries on single numbers, weights and gradients."""

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon
from mxnet.contrib.amp.amp import bfloat16
from mxnet.contrib.amp.lists import symbol_bf16, symbol_fp16
from mxnet.contrib.amp.loss_scaler import LossScaler

from digits import load_digits
from loader import TrainLoader
from sources.transform import Transform
from training import CrossEntropy, forward_backward

TYPES = {"float32": np.float32, "float16": np.float16, "bfloat16": bfloat16}
LISTS = {
    "cast to 16 bits": (symbol_fp16.FP16_FUNCS, symbol_bf16.BF16_FUNCS),
    "float32": (symbol_fp16.FP32_FUNCS, symbol_bf16.FP32_FUNCS),
    "what comes": (symbol_fp16.FP16_FP32_FUNCS, symbol_bf16.BF16_FP32_FUNCS),
    "widest input": (symbol_fp16.WIDEST_TYPE_CASTS, symbol_bf16.WIDEST_TYPE_CASTS),
}


def store(values, dtype):
    """Round numbers to a type; return what is left, as float32."""
    return mx.nd.amp_cast(mx.nd.array(values), dtype=TYPES[dtype]).astype("float32").asnumpy()


def treatment(operator, dtype):
    """Name the list of MXNet's that an operator is in, for float16 or bfloat16."""
    kind = ("float16", "bfloat16").index(dtype)
    return next((name for name, both in LISTS.items() if operator in both[kind]), "another list")


def output_gradients(seed=0):
    """Train a small network on digits for an epoch, in float32; return its gradients' sizes.

    Returns
    -------
    ndarray, shape (n,)
        The sizes above zero of the gradients of all layers' outputs, for one batch.
    """
    digits, to_unit = load_digits(), Transform(mean=(0.0,), std=(255.0,))
    images, labels = digits.train_images[:6000, None], digits.train_labels[:6000]
    loader = TrainLoader(images, labels, 64, transform=to_unit)
    net, loss = gluon.nn.HybridSequential(), CrossEntropy()
    for channels in (16, 32):
        net.add(gluon.nn.Conv2D(channels, 3, padding=1, activation="relu"), gluon.nn.MaxPool2D())
    net.add(gluon.nn.Dense(10))
    mx.random.seed(seed)
    net.initialize(mx.init.Xavier())
    sgd = {"learning_rate": 0.05, "momentum": 0.9}
    trainer = gluon.Trainer(net.collect_params(), "sgd", sgd)
    for batch in loader.epoch(0):
        forward_backward(net, loss, [batch.data], [batch.label], batch.size)
        trainer.step(1)
    batch, added = next(loader.epoch(1)), []
    with autograd.record():
        x = batch.data
        for layer in net:
            x = layer(x)
            added.append(mx.nd.zeros_like(x))  # its gradient is that of the layer's output
            added[-1].attach_grad()
            x = x + added[-1]
        mean_loss = loss(x, batch.label) / batch.size
    mean_loss.backward()
    sizes = np.abs(np.concatenate([zeros.grad.asnumpy().ravel() for zeros in added]))
    return sizes[sizes > 0]


def follow_scale(gradient, num_steps):
    """Let MXNet's LossScaler meet a gradient of constant size for some steps.

    Returns
    -------
    scales : list of float
        The loss scale that each step uses.
    skipped : list of bool
        Whether the step's update is skipped.
    """
    scaler, param = LossScaler(), gluon.Parameter("w", shape=(1,))
    param.initialize()
    scales, skipped = [], []
    for _ in range(num_steps):
        if not scales or scales[-1] != scaler.loss_scale:
            scaled = mx.nd.array([gradient * scaler.loss_scale]).astype("float16")
            param.grad()[:] = scaled.astype("float32")
        scales.append(scaler.loss_scale)
        skipped.append(bool(scaler.has_overflow([param])))
    return scales, skipped


def follow_weight(dtype, multi_precision=False, num_updates=3000):
    """Add 0.0003 to a weight of 1 by SGD, again and again; return its values."""
    sgd = mx.optimizer.SGD(learning_rate=3e-4, multi_precision=multi_precision)
    weight, gradient = mx.nd.array([1], dtype=dtype), mx.nd.array([-1], dtype=dtype)
    state, values = sgd.create_state_multi_precision(0, weight), []
    for update in range(num_updates):
        sgd.update_multi_precision(0, weight, gradient, state)
        if update % 100 == 99:
            values.append(float(weight.asscalar()))
    return values


def refusal(operator, *shapes, **options):
    """Call an operator on float16 arrays; return what MXNet says against it."""
    try:
        operator(*(mx.nd.ones(shape, dtype="float16") for shape in shapes), **options).asnumpy()
    except mx.MXNetError as error:
        return str(error).strip().splitlines()[-1]
