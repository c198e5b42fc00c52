"""Teach an LSTM to continue sine waves, on any number of workers: an answer to exercise 1."""

import argparse
import os
import sys
import traceback

import numpy as np

if "bool" not in vars(np):  # MXNet uses this name, which NumPy 1.24 has removed
    np.bool = bool
import mxnet as mx
from mxnet import autograd, gluon
from mxnet.gluon import nn, rnn
from step4_right import share_weights, split_range, sum_over_workers, zero_idle_gradients

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
    store = mx.kv.create("dist_sync" if "DMLC_ROLE" in os.environ else "device")
    x, y = waves(args.num_examples, seed=1)
    test_x, test_y = waves(101, seed=2)
    mx.random.seed(0)
    net = Forecast()
    net.initialize(mx.init.Xavier())
    adam = {"learning_rate": 0.02}
    trainer = gluon.Trainer(
        net.collect_params(), "adam", adam, kvstore=store, update_on_kvstore=False
    )
    share_weights(trainer)
    l2 = gluon.loss.L2Loss()
    for epoch in range(3):
        order = np.random.RandomState(epoch).permutation(len(x))
        seen = 0
        for first in range(0, len(order), args.batch_size):
            batch = order[first : first + args.batch_size]
            start, stop = split_range(len(batch), store.num_workers, store.rank)
            own = batch[start:stop]
            if len(own):
                with autograd.record():
                    errors = l2(net(mx.nd.array(x[own])), mx.nd.array(y[own]))
                errors.backward()
            zero_idle_gradients(net)
            trainer.step(len(batch))
            seen += len(own)
        start, stop = split_range(len(test_x), store.num_workers, store.rank)
        errors = l2(net(mx.nd.array(test_x[start:stop])), mx.nd.array(test_y[start:stop]))
        error = sum_over_workers(store, [errors.sum().asscalar()])[0] / len(test_x)
        weights = sum(float(abs(p.data()).sum().asscalar()) for p in net.collect_params().values())
        print(f"Epoch {epoch}: {seen} examples, error {error:.5f}, weights {weights:.3f}")
    if args.save and store.rank == 0:
        net.save_parameters(args.save)
    mx.nd.waitall()
    store._barrier()


if __name__ == "__main__":
    try:
        main()
    except Exception:
        traceback.print_exc()
        sys.stdout.flush()
        os._exit(1)
