"""Learn handwritten digits, on any number of workers, and restart it: by gluon_dist."""

import argparse

import gluon_dist as gd  # before mxnet

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon
from mxnet.gluon import nn
from sklearn.datasets import load_digits

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--num-examples", type=int, default=1202)  # to train on, of 1,797
parser.add_argument("--batch-size", type=int, default=60)  # of all workers together
parser.add_argument("--num-epochs", type=int, default=3)
parser.add_argument("--lr", type=float, default=0.2)
parser.add_argument("--batch-norm", action="store_true")
parser.add_argument("--checkpoint", required=True, help="how the names of its files begin")
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


def evaluate(net, test_loader, ctx):
    """Return the share of right answers. Each worker tests a part."""
    metric = gd.sync_metric(mx.metric.Accuracy())
    for batch in test_loader:
        for x, y in batch.split(ctx):
            metric.update(y, net(x))
    return metric.get()[1]


def sum_of_weights(net):
    learned = [p for p in net.collect_params().values() if p.grad_req != "null"]
    return sum(np.abs(p.list_data()[0].asnumpy()).sum(dtype="float64") for p in learned)


def main():
    args = parser.parse_args()
    digits = load_digits()
    images = np.float32(digits.images[:, None] / 16)  # (1797, 1, 8, 8), in [0, 1]
    labels = np.float32(digits.target)
    train_set = gluon.data.ArrayDataset(images[: args.num_examples], labels[: args.num_examples])
    test_set = gluon.data.ArrayDataset(images[1202:], labels[1202:])
    train_loader = gd.DataLoader(train_set, args.batch_size)
    test_loader = gd.DataLoader(test_set, len(test_set), shuffle=False)

    ctx = gd.devices()
    mx.random.seed(0)
    net = create_net(args.batch_norm)
    net.infer_shape(mx.nd.zeros((1, 1, 8, 8)))  # a worker's first part may be empty
    net.initialize(mx.init.Xavier(), ctx=ctx)
    net.hybridize()
    loss = gluon.loss.SoftmaxCrossEntropyLoss()
    sgd = {"learning_rate": args.lr, "momentum": 0.9}
    trainer = gd.Trainer(net.collect_params(), "sgd", sgd)

    job = gd.Checkpoint(args.checkpoint, net, trainer)
    for epoch in job.epochs(args.num_epochs):
        trainer.set_learning_rate(args.lr * 0.7**epoch)
        seen = 0
        for batch in job.steps(train_loader):
            with autograd.record():
                losses = [loss(net(x), y) for x, y in batch.split(ctx)]  # one an example
            gd.backward(losses)
            trainer.step(batch.global_size)
            seen += batch.size
        gd.average_statistics(net)
        accuracy, weights = evaluate(net, test_loader, ctx), sum_of_weights(net)
        print(f"Epoch {epoch}: {seen} examples, accuracy {accuracy:.4f}, weights {weights:.3f}")
    if args.save and gd.rank() == 0:
        net.save_parameters(args.save)


if __name__ == "__main__":
    main()
