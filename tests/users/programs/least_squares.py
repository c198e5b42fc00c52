"""A user's own program, in the variants that people write; prints the weights at its end.

Options after a ``/`` are of one more training in the same job.
"""

import argparse
import sys

import mxnet as mx
from examples import examples
from mxnet import autograd, gluon
from own_classes import Halving


class Warm(mx.lr_scheduler.LRScheduler):
    """A class of the script itself."""

    def __call__(self, num_update):
        return RATE * num_update


class Plain(mx.optimizer.Optimizer):
    """An optimizer of the script itself."""

    def create_state(self, index, weight):
        """It needs none."""

    def update(self, index, weight, grad, state):
        """Go down the gradient."""
        if "--fails" in sys.argv:
            raise ValueError("an update that fails")
        weight -= Halving.first * grad * self.rescale_grad


RATE = 0.02
parser = argparse.ArgumentParser()
parser.add_argument("--schedule", choices=["script", "module", "gluoncv"])
parser.add_argument("--optimizer", default="sgd")
parser.add_argument("--on-workers", action="store_true")
parser.add_argument("--accumulate", type=int, default=1)
parser.add_argument("--frozen", action="store_true")
parser.add_argument("--fails", action="store_true")
parser.add_argument("--steps", type=int, default=6)


def train(args):
    store = mx.kv.create("dist_sync")
    net = gluon.nn.Dense(1, in_units=3)
    net.initialize(mx.init.Zero())
    settings = {"learning_rate": Halving.first}
    if args.schedule == "script":
        settings = {"lr_scheduler": Warm(RATE), "learning_rate": RATE}
    elif args.schedule == "module":
        settings = {"lr_scheduler": Halving(Halving.first), "learning_rate": Halving.first}
    elif args.schedule == "gluoncv":
        from gluoncv.utils import LRScheduler

        schedule = LRScheduler("linear", base_lr=0.1, target_lr=0, niters=10)
        settings = {"lr_scheduler": schedule, "learning_rate": 0.1}
    optimizer = args.optimizer
    if optimizer == "script":
        optimizer, settings = Plain(), None
    if args.accumulate > 1:
        net.weight.grad_req = net.bias.grad_req = "add"
    if args.frozen:
        net.bias.grad_req = "null"
    trainer = gluon.Trainer(
        net.collect_params(), optimizer, settings, store, update_on_kvstore=not args.on_workers
    )
    loss = gluon.loss.L2Loss()
    for step in range(args.steps):
        x, y, size = examples(step, store.num_workers, store.rank)
        with autograd.record():
            losses = loss(net(mx.nd.array(x)), mx.nd.array(y)) / size
        losses.backward()
        if (step + 1) % args.accumulate == 0:
            trainer.step(args.accumulate)
            if args.accumulate > 1:
                net.collect_params().zero_grad()
    print("weights", *net.weight.data().asnumpy()[0], *net.bias.data().asnumpy(), flush=True)


for options in " ".join(sys.argv[1:]).split("/"):
    train(parser.parse_args(options.split()))
