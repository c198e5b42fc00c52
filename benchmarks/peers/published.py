#!/usr/bin/env python3
"""What MXNet's published distributed example did, written again so that it runs on 1.9.1.

    python tools/launch.py -n 2 -s 2 --launcher local "python benchmarks/peers/published.py DATA"

Everything that costs time or accuracy is as published: each image goes through a Python function
of its own, each worker shuffles a fixed half, ResNet-18 with the ImageNet stem and 1000 outputs,
Adam, batches of 256 a worker, MXNet's own settings for threads, the servers' own update, and each
worker evaluates the whole test set. Otherwise: the processor for four GPUs, the last, shorter batch
discarded (it would end the program with an exception), images from RecordIO files.
"""

import random
import resource
import sys
import time
from pathlib import Path

import numpy as np

for builtin in (bool, int, float, complex, object, str):  # or it cannot be imported any more
    vars(np).setdefault(builtin.__name__, builtin)

import mxnet as mx  # noqa: E402
from mxnet import autograd, gluon  # noqa: E402

BATCH_SIZE = 256
NUM_EPOCHS = 5


class HalfSampler(gluon.data.Sampler):
    """A fixed, contiguous part of the examples, shuffled for each epoch."""

    def __init__(self, length, num_parts, part_index):
        self._length = length // num_parts
        self._start = self._length * part_index

    def __iter__(self):
        indices = list(range(self._start, self._start + self._length))
        random.shuffle(indices)
        return iter(indices)

    def __len__(self):
        return self._length


def as_float(image, label):
    """Scale one image, (H, W, C) to (C, H, W)."""
    return mx.nd.transpose(image.astype(np.float32), (2, 0, 1)) / 255, np.float32(label)


def load(path):
    """Decode a RecordIO file into a dataset whose items go through :func:`as_float`."""
    records = mx.recordio.MXRecordIO(str(path), "r")
    images, labels = [], []
    for record in iter(records.read, None):
        header, content = mx.recordio.unpack(record)
        images.append(mx.image.imdecode(content).asnumpy())
        labels.append(int(header.label))
    data = mx.nd.array(np.stack(images), dtype=np.uint8)
    return gluon.data.ArrayDataset(data, np.array(labels)).transform(as_float)


def main():
    """Train, and print the accuracy of each epoch."""
    folder = Path(sys.argv[1])
    num_epochs = int(sys.argv[2]) if len(sys.argv) > 2 else NUM_EPOCHS
    store = mx.kv.create("dist")
    ctx = mx.cpu()
    train, test = load(folder / "cifar10_train.rec"), load(folder / "cifar10_val.rec")
    sampler = HalfSampler(len(train), store.num_workers, store.rank)
    train_data = gluon.data.DataLoader(train, BATCH_SIZE, sampler=sampler, last_batch="discard")
    test_data = gluon.data.DataLoader(test, BATCH_SIZE)
    net = gluon.model_zoo.vision.resnet18_v1()
    net.initialize(mx.init.Xavier(), ctx=ctx)
    loss = gluon.loss.SoftmaxCrossEntropyLoss()
    trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.001}, kvstore=store)
    start = time.time()
    for epoch in range(num_epochs):
        for step, (data, label) in enumerate(train_data):
            with autograd.record():
                error = loss(net(data), label)
            error.backward()
            trainer.step(BATCH_SIZE)
            if step == 0 and epoch == 0:
                mx.nd.waitall()
                print(f"First batch at {time.time():.3f}", flush=True)
        mx.nd.waitall()
        accuracy = mx.metric.Accuracy()
        for data, label in test_data:
            accuracy.update(label, net(data).argmax(axis=1))
        seconds = time.time() - start
        print(f"Epoch {epoch}: Test_acc {accuracy.get()[1]:f} after {seconds:.1f} s", flush=True)
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"Peak memory: {peak_mb:.1f} MB", flush=True)


if __name__ == "__main__":
    main()
