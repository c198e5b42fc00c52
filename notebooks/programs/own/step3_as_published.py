"""Learn handwritten digits, on several workers as published: with its mistakes."""

import argparse

import numpy as np

if "bool" not in vars(np):  # MXNet uses this name, which NumPy 1.24 has removed
    np.bool = bool
import mxnet as mx
from mxnet import autograd, gluon
from mxnet.gluon import nn
from sklearn.datasets import load_digits

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--num-examples", type=int, default=1202)  # to train on, of 1,797
parser.add_argument("--batch-size", type=int, default=60)  # of one worker
parser.add_argument("--num-epochs", type=int, default=3)
parser.add_argument("--lr", type=float, default=0.2)
parser.add_argument("--batch-norm", action="store_true")
parser.add_argument("--num-devices", type=int, default=2)  # where there is no GPU
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


class SplitSampler(gluon.data.sampler.Sampler):
    """Draw from one of ``num_parts`` parts of a data set, in random order."""

    def __init__(self, length, num_parts, part):
        self.length = length // num_parts
        self.first = self.length * part

    def __len__(self):
        return self.length

    def __iter__(self):
        return iter(self.first + np.random.permutation(self.length))


def split(x, y, ctx):
    """Return pairs of images and labels, one for each device."""
    parts = [gluon.utils.split_and_load(array, ctx, even_split=False) for array in (x, y)]
    return list(zip(*parts))


def evaluate(net, test_set, ctx):
    """Return the share of right answers."""
    parts = split(*test_set[:], ctx)
    right = sum((net(x).argmax(axis=1) == y).sum().asscalar() for x, y in parts)
    return right / len(test_set)


def sum_of_weights(net):
    learned = [p for p in net.collect_params().values() if p.grad_req != "null"]
    return sum(np.abs(p.list_data()[0].asnumpy()).sum(dtype="float64") for p in learned)


def main():
    args = parser.parse_args()
    store = mx.kv.create("dist_sync")
    digits = load_digits()
    images = np.float32(digits.images[:, None] / 16)  # (1797, 1, 8, 8), in [0, 1]
    labels = np.float32(digits.target)
    train_set = gluon.data.ArrayDataset(images[: args.num_examples], labels[: args.num_examples])
    test_set = gluon.data.ArrayDataset(images[1202:], labels[1202:])
    np.random.seed(0)
    sampler = SplitSampler(len(train_set), store.num_workers, store.rank)
    train_loader = gluon.data.DataLoader(train_set, args.batch_size, sampler=sampler)

    gpus = [mx.gpu(i) for i in range(mx.context.num_gpus())]
    ctx = gpus or [mx.cpu(1 + i) for i in range(args.num_devices)]
    mx.random.seed(0)
    net = create_net(args.batch_norm)
    net.initialize(mx.init.Xavier(), ctx=ctx)
    net.hybridize()
    loss = gluon.loss.SoftmaxCrossEntropyLoss()
    sgd = {"learning_rate": args.lr, "momentum": 0.9}
    trainer = gluon.Trainer(net.collect_params(), "sgd", sgd, kvstore=store)

    for epoch in range(args.num_epochs):
        trainer.set_learning_rate(args.lr * 0.7**epoch)
        seen = 0
        for x, y in train_loader:
            with autograd.record():
                losses = [loss(net(a), b) for a, b in split(x, y, ctx)]  # one an example
            autograd.backward(losses)
            trainer.step(len(x))
            seen += len(x)
        accuracy, weights = evaluate(net, test_set, ctx), sum_of_weights(net)
        print(f"Epoch {epoch}: {seen} examples, accuracy {accuracy:.4f}, weights {weights:.3f}")
    if args.save:
        net.save_parameters(args.save)


if __name__ == "__main__":
    main()
