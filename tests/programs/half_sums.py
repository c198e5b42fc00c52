"""Steps of SGD whose gradients are sent in float16; prints the updates of worker 0.

The gradients of a worker are given, an array of them. The learning rate is 1, so that the weights,
which begin at zero, end at minus the sums.
"""

import gluon_dist  # noqa: F401  first
from gluon_dist.common.failure import exit_with
from gluon_dist.workers.workers import Workers

import mxnet as mx
from mxnet.gluon import nn

from command_line.parse import parse_args
from run.trainer import create_trainer

# Of workers 0, 1 and 2. In float16, 2048 + 1 is 2048, whoever comes first in one of three rows;
# below 3e-8 it has only zero.
GRADIENTS = (
    (2, 2**-10, 2**-10),
    (2**-10, 2, 2**-10),
    (2**-10, 2**-10, 2),
    (2e-8, 2e-8, 2e-8),
    (60, 30, -20),
    (-60, 30, 20),
)


def main():
    store = mx.kv.create("dist_sync")
    workers = Workers(store)
    words = "--gc-type fp16 --optimizer sgd --mom 0 --lr 1"
    args = parse_args(words.split())
    net = nn.Dense(1, in_units=len(GRADIENTS), use_bias=False)
    net.initialize(mx.init.Zero())
    trainer = create_trainer(args, net, workers, 1)
    mine = mx.nd.array([[row[workers.rank] for row in GRADIENTS]])
    with mx.autograd.record():
        # As if each worker had one example of a batch.
        loss = net(mine * workers.count) / workers.count
    loss.backward()
    trainer.step(1)
    if workers.rank == 0:
        print("sums", *(-net.weight.data().asnumpy()[0].astype("float64")))
    workers.barrier()


exit_with(main, "half_sums.py")
