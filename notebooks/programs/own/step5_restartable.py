"""Learn handwritten digits, on any number of devices and workers, and restart it."""

import argparse
import io
import os
import sys
import tempfile
import traceback
import zipfile

import numpy as np

if "bool" not in vars(np):  # MXNet uses this name, which NumPy 1.24 has removed
    np.bool = bool
import mxnet as mx
from mxnet import autograd, gluon
from mxnet.gluon import nn
from sklearn.datasets import load_digits

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--num-examples", type=int, default=1202)  # to train on, of 1,797
parser.add_argument("--batch-size", type=int, default=60)  # of all workers together
parser.add_argument("--num-epochs", type=int, default=3)
parser.add_argument("--lr", type=float, default=0.2)
parser.add_argument("--batch-norm", action="store_true")
parser.add_argument("--num-devices", type=int, default=2)  # where there is no GPU
parser.add_argument("--checkpoint", help="a file to go on from, and to save in")
parser.add_argument("--save", help="a file for the parameters at the end")


def create_net(batch_norm):
    net = nn.HybridSequential()
    for channels in (8, 16):
        net.add(nn.Conv2D(channels, 3, padding=1))
        if batch_norm:
            net.add(nn.BatchNorm())
        net.add(nn.Activation("tanh"), nn.AvgPool2D())
    net.add(nn.Dense(32, activation="tanh"), nn.Dense(10))
    return net


def split_range(length, num_parts, part):
    """Return where one of ``num_parts`` near-equal parts of ``range(length)`` starts and stops."""
    size, longer = divmod(length, num_parts)  # the first parts are longer by one
    start = part * size + min(part, longer)
    return start, start + size + (part < longer)


def share_weights(trainer):
    """Give worker 0's parameters to all workers, and wait until they are there."""
    trainer._init_kvstore()
    trainer._init_params()
    mx.nd.waitall()


def zero_idle_gradients(net):
    """Set the gradients of devices without an example to zero."""
    for param in net.collect_params().values():
        if param.grad_req != "null":
            for data, gradient in zip(param.list_data(), param.list_grad()):
                if not data._fresh_grad:  # backward has not written this gradient
                    gradient[:] = 0
                    data._fresh_grad = True  # else the Trainer refuses it


own_keys = {}  # length of a vector: its key in the store, from 100,000 to 215,327


def sum_over_workers(store, values):
    """Add up a vector of numbers over all workers. All of them must call this."""
    vector = mx.nd.array(values)
    if len(vector) not in own_keys:
        own_keys[len(vector)] = 100_000 + len(own_keys)
        store.init(own_keys[len(vector)], mx.nd.zeros(len(vector)))
    store.push(own_keys[len(vector)], vector)
    store.pull(own_keys[len(vector)], out=vector)
    return vector.asnumpy()  # waits: a push before the pull is done would count as another worker's


def average_batch_norm(store, net):
    """Average BatchNorm's running mean and variance over all devices of all workers."""
    for param in net.collect_params().values():
        if param.grad_req == "null":  # not learned: each device has counted for itself
            own = np.mean([data.asnumpy() for data in param.list_data()], axis=0)
            total = sum_over_workers(store, own.ravel())
            param.set_data(mx.nd.array(total.reshape(own.shape) / store.num_workers))


def bytes_of_worker_0(store, content):
    """Give all workers the bytes of worker 0."""
    length = len(content) if store.rank == 0 else 0
    high, low = sum_over_workers(store, divmod(length, 1 << 16))  # float32 is exact to 1 << 24
    values = np.zeros((int(high) << 16) + int(low))
    if store.rank == 0:
        values[:] = np.frombuffer(content, "uint8")
    return sum_over_workers(store, values).astype("uint8").tobytes() if len(values) else b""


def save_checkpoint(path, epochs_done, net, trainer):
    """Write parameters, the optimizer's states and the number of epochs into one file."""
    with tempfile.TemporaryDirectory() as folder:
        net.save_parameters(f"{folder}/parameters")
        trainer.save_states(f"{folder}/states")
        with zipfile.ZipFile(f"{path}.tmp", "w") as archive:
            archive.write(f"{folder}/parameters", "parameters")
            archive.write(f"{folder}/states", "states")
            archive.writestr("epochs_done", str(epochs_done))
    os.replace(f"{path}.tmp", path)  # whole or not at all


def load_checkpoint(path, store, net, trainer):
    """Restore what worker 0 finds in the file; return the number of epochs that are done."""
    content = b""
    if store.rank == 0 and path and os.path.exists(path):
        with open(path, "rb") as file:
            content = file.read()
    content = bytes_of_worker_0(store, content)
    if not content:
        return 0
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(io.BytesIO(content)) as archive:
        archive.extractall(folder)
        net.load_parameters(f"{folder}/parameters")
        trainer.load_states(f"{folder}/states")
        return int(archive.read("epochs_done"))


def split(x, y, ctx):
    """Return pairs of images and labels, one for each device that gets any."""
    busy = ctx[: len(x)]
    if not busy:
        return []
    parts = [gluon.utils.split_and_load(array, busy, even_split=False) for array in (x, y)]
    return list(zip(*parts))


def evaluate(net, test_set, ctx, store):
    """Return the share of right answers. Each worker tests a part."""
    start, stop = split_range(len(test_set), store.num_workers, store.rank)
    parts = split(*test_set[start:stop], ctx)
    right = sum((net(x).argmax(axis=1) == y).sum().asscalar() for x, y in parts)
    return sum_over_workers(store, [right])[0] / len(test_set)


def sum_of_weights(net):
    learned = [p for p in net.collect_params().values() if p.grad_req != "null"]
    return sum(np.abs(p.list_data()[0].asnumpy()).sum(dtype="float64") for p in learned)


def main():
    args = parser.parse_args()
    store = mx.kv.create("dist_sync" if "DMLC_ROLE" in os.environ else "device")
    digits = load_digits()
    images = np.float32(digits.images[:, None] / 16)  # (1797, 1, 8, 8), in [0, 1]
    labels = np.float32(digits.target)
    train_set = gluon.data.ArrayDataset(images[: args.num_examples], labels[: args.num_examples])
    test_set = gluon.data.ArrayDataset(images[1202:], labels[1202:])

    gpus = [mx.gpu(i) for i in range(mx.context.num_gpus())]
    ctx = gpus or [mx.cpu(1 + i) for i in range(args.num_devices)]
    mx.random.seed(0)
    net = create_net(args.batch_norm)
    net.infer_shape(mx.nd.zeros((1, 1, 8, 8)))  # parameters without a shape cannot be shared
    net.initialize(mx.init.Xavier(), ctx=ctx)
    net.hybridize()
    loss = gluon.loss.SoftmaxCrossEntropyLoss()
    sgd = {"learning_rate": args.lr, "momentum": 0.9}
    trainer = gluon.Trainer(
        net.collect_params(), "sgd", sgd, kvstore=store, update_on_kvstore=False
    )
    share_weights(trainer)

    epochs_done = load_checkpoint(args.checkpoint, store, net, trainer)
    if epochs_done and store.rank == 0:
        print(f"{args.checkpoint}: epochs done: {epochs_done}")
    for epoch in range(epochs_done, args.num_epochs):
        trainer.set_learning_rate(args.lr * 0.7**epoch)
        mx.random.seed(1000 * epoch + store.rank)  # for dropout: other masks on each worker
        order = np.random.RandomState([0, epoch]).permutation(len(train_set))  # the same on all
        seen = 0
        for first in range(0, len(order), args.batch_size):
            batch = order[first : first + args.batch_size]  # of all workers together
            start, stop = split_range(len(batch), store.num_workers, store.rank)
            x, y = train_set[batch[start:stop]]
            with autograd.record():
                losses = [loss(net(a), b) for a, b in split(x, y, ctx)]  # one an example
            if losses:
                autograd.backward(losses)
            zero_idle_gradients(net)
            trainer.step(len(batch))
            seen += len(x)
        average_batch_norm(store, net)
        accuracy, weights = evaluate(net, test_set, ctx, store), sum_of_weights(net)
        print(f"Epoch {epoch}: {seen} examples, accuracy {accuracy:.4f}, weights {weights:.3f}")
        if store.rank == 0 and args.checkpoint:
            save_checkpoint(args.checkpoint, epoch + 1, net, trainer)
    if args.save and store.rank == 0:
        net.save_parameters(args.save)
    mx.nd.waitall()  # at its exit MXNet drops what is still queued
    store._barrier()  # nobody leaves while others still need the servers


if __name__ == "__main__":
    try:
        main()
    except Exception:  # at its exit this worker would wait for the others
        traceback.print_exc()
        sys.stdout.flush()
        os._exit(1)
