#!/usr/bin/env python3
"""From the published example's way of training to this project's, one change at a time.

    python tools/launch.py -n 2 -s 2 --launcher local "python benchmarks/ladder.py --rungs 3"

Trains ResNet-18 on synthetic images and prints speed lines. Rung 0 is the published way with two
differences: it reads each loss before the update, as many programs do, and it divides the loss
instead of the gradients. Each further rung adds one change of rungs.py. The eighth is a setting of
malloc: GLIBC_TUNABLES in the environment of the job turns it off.
"""

import argparse
import os
import time

from rungs import RUNGS

parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
parser.add_argument("--rungs", type=int, default=len(RUNGS), help="how many of them to climb")
parser.add_argument("--batch-size", type=int, default=128)
parser.add_argument("--steps", type=int, default=30)
parser.add_argument("--disp-batches", type=int, default=10)
args = parser.parse_args()
has = {*list(RUNGS)[: args.rungs]}

from gluon_dist.setup.process import usable_processors

import lesson  # noqa: F401

if "threads" not in has:  # as MXNet does by itself: half of the processors, but at least one
    half = max(1, usable_processors() // 2)
    os.environ["OMP_NUM_THREADS"] = str(half)
    os.environ["MXNET_USE_NUM_CORES_OPERATOR_TUNING"] = str(max(1, half // 2))

from gluon_dist.common.failure import exit_with
from gluon_dist.exchange.buckets import Buckets
from gluon_dist.exchange.optimizers import Adam
from gluon_dist.exchange.shared_memory import SharedBuckets, share_memory
from gluon_dist.exchange.trainer import Trainer

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon

from loader import TrainLoader
from networks.one_pixel import use_products
from sources import synthetic


def batches(images, labels, store):
    """Yield batches without end, read in one of the two ways."""
    if "batches" in has:
        loader = TrainLoader(images, labels, args.batch_size, store.num_workers, store.rank)
        epoch = 0
        while True:
            for batch in loader.epoch(epoch):
                if batch.global_size == loader.global_batch_size:
                    yield batch.data, batch.label
            epoch += 1

    def as_float(image, label):
        return mx.nd.transpose(image.astype("float32"), (2, 0, 1)) / 255, np.float32(label)

    pictures = mx.nd.array(images.transpose(0, 2, 3, 1), dtype="uint8")
    dataset = gluon.data.ArrayDataset(pictures, labels).transform(as_float)
    while True:
        yield from gluon.data.DataLoader(
            dataset, args.batch_size, shuffle=True, last_batch="discard"
        )


class LadderTrainer(Trainer):
    """A Trainer that adds gradients up as this rung does, even in one process."""

    def _choose_exchange(self):
        if "shared memory" in has:
            return SharedBuckets(share_memory(self._workers, True, 0))
        return Buckets()


def main():
    """Train, and print how fast."""
    store = mx.kv.create((os.environ.get("DMLC_ROLE") and "dist") or "local")
    mx.random.seed(0)
    images, labels = synthetic.make_images(5000, 0)
    net = gluon.model_zoo.vision.resnet18_v1(classes=10)
    net.initialize(mx.init.Xavier())
    net.infer_shape(mx.nd.zeros((1, 3, 32, 32)))
    loss = gluon.loss.SoftmaxCrossEntropyLoss()
    if "products" in has:
        use_products(net, (3, 32, 32))
    if "hybridized" in has:
        loss.hybridize(static_alloc=True, static_shape=True)
        bulk = {"backward_bulk_size": 4} if "buckets" in has else {}
        net.hybridize(static_alloc=True, static_shape=True, **bulk)
    params = net.collect_params()
    if "buckets" in has:
        for param in params.values():
            param._finish_deferred_init()
        trainer = LadderTrainer(params, Adam(), kvstore=store)
    else:
        here = {"update_on_kvstore": False} if "updates" in has else {}
        trainer = gluon.Trainer(params, "adam", {"learning_rate": 0.001}, store, **here)
    start = time.time()
    for step, (data, label) in zip(range(1, args.steps + 1), batches(images, labels, store)):
        with autograd.record():
            error = loss(net(data), label) / (args.batch_size * store.num_workers)
        error.backward()
        if "no wait" not in has:
            error.sum().asscalar()
        trainer.step(1)
        if step % args.disp_batches == 0:
            mx.nd.waitall()
            seconds, start = time.time() - start, time.time()
            if store.rank == 0:
                speed = args.disp_batches * args.batch_size / seconds
                print(f"Batch [{step}]\tSpeed: {speed:.2f} samples/sec", flush=True)
    return 0


if __name__ == "__main__":
    exit_with(main, "ladder.py")
