"""A program of a user's own that gluon_dist.Checkpoint makes restartable: a small GAN, or one net.

It has all that makes a training hard to repeat: BatchNorm, dropout, random numbers of three
generators in a transform and in the loop, a scheduler of its own whose numbers move, a rate set by
hand. At its end it says the SHA-256 of all parameters, and saves them.

    own_job.py PREFIX [gan | one] [exact | plain] [--num-epochs N] [--devices N] [--pause S] ...
"""

import argparse
import hashlib
import random
import sys
import time

import gluon_dist as gd

import mxnet as mx
import numpy as np
from mxnet.gluon import data, loss, nn


class Swing(mx.lr_scheduler.LRScheduler):
    """A rate that depends on the calls before, and attributes that JSON cannot hold as they are."""

    def __init__(self, base_lr):
        super().__init__(base_lr)
        self.rate, self.best, self.warm = np.float64(1), float("inf"), True
        self.recent = [np.float32(1), 1, 1]

    def __call__(self, num_update):
        self.rate *= 0.99 if self.warm else 1.01
        self.best, self.warm = min(self.best, self.rate), num_update < 5
        self.recent = [*self.recent[1:], self.rate]
        return self.base_lr * sum(self.recent) / 3


def network(kind, outputs):
    """Scores of images (n, 1, 6, 6); the shapes are known once it was used."""
    net = nn.HybridSequential()
    net.add(nn.Conv2D(4, 3))
    if kind == "exact":
        net.add(nn.BatchNorm(), nn.Dropout(0.3))
    net.add(nn.Activation("relu"), nn.Dense(outputs))
    return net


class Images(data.Dataset):
    """Random images; each is shifted by what is drawn when it is loaded."""

    def __init__(self, kind, length=40):
        self._x = np.random.RandomState(1).normal(size=(length, 1, 6, 6)).astype("float32")
        self._noise = 0.1 if kind == "exact" else 0

    def __len__(self):
        return len(self._x)

    def __getitem__(self, index):
        noise = self._noise * (np.random.normal() + random.random())
        return self._x[index] + np.float32(noise), np.float32(index % 3)


def parse():
    """Read the command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("prefix")
    parser.add_argument("form", choices=("gan", "one"), nargs="?", default="gan")
    parser.add_argument("kind", choices=("exact", "plain"), nargs="?", default="exact")
    parser.add_argument("--num-epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=12)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--devices", type=int, default=1)
    parser.add_argument("--keep", type=int)
    parser.add_argument("--optimizer", default="adam")
    parser.add_argument("--pause", type=float, default=0, help="seconds after each step")
    parser.add_argument("--late", type=float, default=0, help="seconds more, on worker 1")
    parser.add_argument("--outputs", type=int, default=3)
    parser.add_argument("--store", help="such as dist_async")
    parser.add_argument("--fail", type=int, help="the worker that raises in the second epoch")
    parser.add_argument("--asks", type=int, help="the worker that asks a metric of all, alone")
    return parser.parse_args()


def main():
    """Train, and say how it ended."""
    args = parse()
    mx.random.seed(7)
    if args.store:
        gd.store(args.store)
    ctx = [mx.cpu(i + 1) for i in range(args.devices)] if args.devices > 1 else gd.devices()
    nets = {"judge": network(args.kind, args.outputs)}
    if args.form == "gan":
        nets["maker"] = network(args.kind, 36)
    for net in nets.values():
        net.initialize(mx.init.Xavier(), ctx=ctx)
        net.hybridize()
    is_async = args.store == "dist_async"
    options = {"learning_rate": 0.01} if is_async else {"lr_scheduler": Swing(0.01)}
    trainers = {"judge": gd.Trainer(nets["judge"].collect_params(), args.optimizer, options)}
    if args.form == "gan":
        sgd = {"learning_rate": 0.05, "momentum": 0.9}
        trainers["maker"] = gd.Trainer(nets["maker"].collect_params(), "sgd", sgd)
    loader = gd.DataLoader(Images(args.kind), args.batch_size, seed=args.seed)
    is_gan = args.form == "gan"
    job = gd.Checkpoint(
        args.prefix,
        nets if is_gan else nets["judge"],
        trainers if is_gan else trainers["judge"],
        keep=args.keep,
    )
    entropy = loss.SoftmaxCrossEntropyLoss()
    for epoch in job.epochs(args.num_epochs):
        if epoch == 1 and is_gan:
            trainers["maker"].set_learning_rate(0.02)
        for step, batch in enumerate(job.steps(loader)):
            if args.fail == gd.rank() and epoch == 1 and step == 1:
                raise RuntimeError("as told")
            losses = []
            with mx.autograd.record():
                for x, y in batch.split(ctx):
                    z = x
                    if args.kind == "exact":  # noise of MXNet and of NumPy
                        z = x + 0.1 * mx.nd.random.normal(shape=x.shape, ctx=x.context)
                        z = z * np.random.uniform(0.9, 1.1)
                    if is_gan:
                        z = nets["maker"](z).reshape(x.shape)
                    losses.append(entropy(nets["judge"](z), y))
            gd.backward(losses)
            for trainer in trainers.values():
                trainer.step(batch.global_size)
            if gd.rank() == 0:
                print(f"epoch {epoch} step {step}", flush=True)
            time.sleep(args.pause + args.late * gd.rank())
        for net in nets.values():
            gd.average_statistics(net)
        if args.asks == gd.rank():
            gd.sync_metric(mx.metric.Loss()).get()
    for trainer in trainers.values():
        trainer.pull_weights()
    values = {
        f"{key}.{name}": param.data(ctx[0]).asnumpy()
        for key, net in nets.items()
        for name, param in net._collect_params_with_prefix().items()
    }
    digest = hashlib.sha256(b"".join(value.tobytes() for value in values.values())).hexdigest()
    if gd.rank() == 0:
        np.savez(f"{args.prefix}.npz", **values)
    print(f"End of worker {gd.rank()}: {digest}\n", end="", flush=True)


if __name__ == "__main__":
    sys.exit(main())
