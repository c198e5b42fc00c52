"""Networks and checkpoints as MXNet's older image-classification examples have them, by Module."""

import mxnet as mx
import numpy as np

MEAN, STD = (123.68, 116.779, 103.939), (1, 1, 1)
SCALING = ("--rgb-mean", "123.68,116.779,103.939", "--rgb-std", "1,1,1")


def old_resnet(blocks_per_stage=1, num_classes=10, widths=(16, 32, 64), prefix=""):
    """A residual network for small images (6n+2 layers), its layers named as there.

    BatchNorm and ReLU come before each convolution; the images pass a BatchNorm first.
    """

    def norm(data, name, **more):
        return mx.sym.BatchNorm(data, name=prefix + name, eps=2e-5, momentum=0.9, **more)

    def norm_relu(data, name):
        after = norm(data, name, fix_gamma=False)
        return mx.sym.Activation(after, act_type="relu", name=prefix + name.replace("bn", "relu"))

    def conv(data, width, name, size=3, stride=1):
        shape = {"kernel": (size, size), "pad": (size // 2,) * 2, "stride": (stride,) * 2}
        options = dict(shape, num_filter=width, no_bias=True, workspace=256)
        return mx.sym.Convolution(data, name=prefix + name, **options)

    net = mx.sym.identity(mx.sym.Variable("data"), name=f"{prefix}id")
    net = conv(norm(net, "bn_data", fix_gamma=True), widths[0], "conv0")
    for stage, width in enumerate(widths, 1):
        for unit in range(1, blocks_per_stage + 1):
            name = f"stage{stage}_unit{unit}_"
            stride = 2 if unit == 1 and stage > 1 else 1
            active = norm_relu(net, f"{name}bn1")
            inner = norm_relu(conv(active, width, f"{name}conv1", stride=stride), f"{name}bn2")
            inner = conv(inner, width, f"{name}conv2")
            net = inner + (net if unit > 1 else conv(active, width, f"{name}sc", 1, stride))
    net = mx.sym.Pooling(norm_relu(net, "bn1"), kernel=(7, 7), global_pool=True, pool_type="avg")
    net = mx.sym.FullyConnected(mx.sym.Flatten(net), num_hidden=num_classes, name=f"{prefix}fc1")
    return mx.sym.SoftmaxOutput(net, name="softmax")


def plain(num_classes=10):
    """A small convolution network whose layers have names of no kind; no BatchNorm, no dropout."""
    net = mx.sym.Convolution(mx.sym.Variable("data"), num_filter=8, kernel=(3, 3), stride=(4, 4))
    net = mx.sym.Activation(net, act_type="relu")
    weight = mx.sym.Variable("what_is_learned_last", init=mx.init.Xavier())
    net = mx.sym.FullyConnected(mx.sym.Flatten(net), weight, num_hidden=num_classes, name="end")
    return mx.sym.SoftmaxOutput(net, name="softmax")


def batches(images, labels, batch_size=50, mean=MEAN, std=STD):
    """Bytes (n, 3, H, W), scaled as there, for Module."""
    mean, std = (np.array(x, np.float32)[:, None, None] for x in (mean, std))
    return mx.io.NDArrayIter((images - mean) / std, labels.astype(np.float32), batch_size)


def train_with_module(symbol, prefix, data, num_epochs=2, lr=0.05):
    """Train, and save after each epoch."""
    module = mx.mod.Module(symbol, context=mx.cpu())
    sgd = {"learning_rate": lr, "momentum": 0.9, "wd": 1e-4}
    module.fit(
        data,
        num_epoch=num_epochs,
        optimizer="sgd",
        optimizer_params=sgd,
        initializer=mx.init.Xavier(rnd_type="gaussian", factor_type="in", magnitude=2),
        epoch_end_callback=mx.callback.do_checkpoint(str(prefix)),
    )
    return module


def accuracy_of(prefix, epoch, data):
    """What Module reports for a checkpoint."""
    module = mx.mod.Module.load(str(prefix), epoch, context=mx.cpu())
    module.bind(data.provide_data, data.provide_label, for_training=False)
    return dict(module.score(data, "acc"))["accuracy"]
