#!/usr/bin/env python3
"""Measure the images a second of a loader, in one thread, without training.

python benchmarks/loading.py ours       whole batches: crop, flip, normalise
python benchmarks/loading.py published  each image through a function of its own, not changed
"""

import sys
import time

import gluon_dist  # noqa: F401

import mxnet as mx
import numpy as np
from mxnet import gluon

import lesson  # noqa: F401
from loader import TrainLoader
from sources import synthetic
from sources.transform import Transform

BATCH_SIZE, ROUNDS = 256, 5


def as_float(image, label):
    return mx.nd.transpose(image.astype("float32"), (2, 0, 1)) / 255, np.float32(label)


def main(kind):
    count = 10_000 if kind == "ours" else 2_000
    images, labels = synthetic.make_images(10_000, 0, first=count)
    if kind == "ours":
        mean, std = (125.3, 123.0, 113.9), (63.0, 62.1, 66.7)
        loader = TrainLoader(
            images, labels, BATCH_SIZE, transform=Transform(4, True, True, mean, std)
        )
        epochs = (loader.batches(epoch) for epoch in range(ROUNDS))
    else:
        pictures = mx.nd.array(images.transpose(0, 2, 3, 1), dtype="uint8")
        dataset = gluon.data.ArrayDataset(pictures, labels).transform(as_float)
        epochs = (gluon.data.DataLoader(dataset, BATCH_SIZE, shuffle=True) for _ in range(ROUNDS))
    for batches in epochs:
        start = time.perf_counter()
        for _ in batches:
            pass
        mx.nd.waitall()
        print(f"Speed: {count / (time.perf_counter() - start):.0f} samples/sec", flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
