"""Teach an LSTM to continue sine waves, on one device: the program of notebook 04's exercise."""

import argparse

import numpy as np

if "bool" not in vars(np):  # MXNet uses this name, which NumPy 1.24 has removed
    np.bool = bool
import mxnet as mx
from mxnet import autograd, gluon
from mxnet.gluon import nn, rnn

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--num-examples", type=int, default=200)
parser.add_argument("--batch-size", type=int, default=30)
parser.add_argument("--save", help="a file for the parameters at the end")


class Forecast(gluon.HybridBlock):
    def __init__(self):
        super().__init__()
        self.lstm = rnn.LSTM(8, layout="NTC", input_size=1)
        self.last = nn.Dense(1, in_units=8)

    def hybrid_forward(self, F, x):
        return self.last(F.slice_axis(self.lstm(x), axis=1, begin=-1, end=None))


def waves(count, seed):
    """Return the first 12 points of waves, shape (n, 12, 1), and the next one, shape (n, 1)."""
    random = np.random.RandomState(seed)
    frequency, phase = random.uniform(0.2, 1.0, (count, 1)), random.uniform(0, 6.28, (count, 1))
    wave = np.float32(np.sin(frequency * np.arange(13) + phase))
    return wave[:, :12, None], wave[:, 12:]


def main():
    args = parser.parse_args()
    x, y = waves(args.num_examples, seed=1)
    test_x, test_y = waves(101, seed=2)
    mx.random.seed(0)
    net = Forecast()
    net.initialize(mx.init.Xavier())
    trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.02})
    l2 = gluon.loss.L2Loss()
    for epoch in range(3):
        order = np.random.RandomState(epoch).permutation(len(x))
        seen = 0
        for first in range(0, len(order), args.batch_size):
            batch = order[first : first + args.batch_size]
            with autograd.record():
                error = l2(net(mx.nd.array(x[batch])), mx.nd.array(y[batch])).mean()
            error.backward()
            trainer.step(1)  # the loss is a mean already
            seen += len(batch)
        error = l2(net(mx.nd.array(test_x)), mx.nd.array(test_y)).mean().asscalar()
        weights = sum(float(abs(p.data()).sum().asscalar()) for p in net.collect_params().values())
        print(f"Epoch {epoch}: {seen} examples, error {error:.5f}, weights {weights:.3f}")
    if args.save:
        net.save_parameters(args.save)


if __name__ == "__main__":
    main()
