#!/usr/bin/env python3
"""What it costs to save a checkpoint after every epoch: time and disk.

    python benchmarks/checkpoint_cost.py [--network resnet18_v1] [--optimizer adam]

A save stops the training while it takes copies. Then a thread writes them, which slows the next
steps a little. Both are measured: the time of STEPS steps after a save, minus the time of as many
without one. They are compared with an epoch of CIFAR-10's 50,000 images at the measured speed.
Prints the numbers and adds a line to benchmarks/results/saving.csv.
"""

import argparse
import datetime
import statistics
import tempfile
import time
from pathlib import Path

import gluon_dist

import mxnet as mx

import lesson  # noqa: F401
from networks.by_name import get_network
from tables import RESULTS, read, write
from training import CrossEntropy, forward_backward

SAVING = RESULTS / "saving.csv"
EPOCH = 50_000  # images of CIFAR-10
STEPS = 6  # enough to outlast the writing


def seconds(act, *args, **options):
    """Return how long an act takes."""
    start = time.perf_counter()
    act(*args, **options)
    return time.perf_counter() - start


def measure(network, optimizer, folder, batch_size=256, repeats=5):
    """Return the columns of saving.csv."""
    ctx = [mx.gpu(i) for i in range(mx.context.num_gpus())][:1] or [mx.cpu()]
    net = get_network(network, 10, (3, 32, 32), ctx)
    trainer = gluon_dist.Trainer(net.collect_params(), mx.optimizer.create(optimizer))
    data = [mx.nd.random.uniform(shape=(batch_size, 3, 32, 32), ctx=ctx[0])]
    label, loss = [mx.nd.zeros(batch_size, ctx=ctx[0])], CrossEntropy()

    def steps(count=STEPS):
        for _ in range(count):
            forward_backward(net, loss, data, label, batch_size)
            trainer.step(1)
        mx.nd.waitall()

    steps(3)
    job = gluon_dist.Checkpoint(f"{folder}/model", net, trainer, keep=1)
    job.restore()  # nothing is there
    plain, saving, held = [], [], []
    for epoch in range(1, repeats + 1):
        plain.append(seconds(steps))
        held.append(seconds(job.save, epoch))
        saving.append(held[-1] + seconds(steps))
    written_s = seconds(job.save, epoch + 1) + seconds(job.close)  # with nothing beside it
    epoch_s = min(plain) / STEPS * EPOCH / batch_size
    extra_s = statistics.median(saving) - statistics.median(plain)
    size = sum(path.stat().st_size for path in Path(folder).iterdir())
    return {
        "network": network,
        "optimizer": optimizer,
        "epoch_s": round(epoch_s, 2),
        "training_held_up_s": round(statistics.median(held), 3),
        "until_on_disk_s": round(written_s, 3),
        "epoch_longer_by_s": round(extra_s, 3),
        "epoch_longer_by_percent": round(100 * max(extra_s, 0) / epoch_s, 2),
        "disk_mb": round(size / 1e6, 1),
        "repeats": repeats,
        "date": datetime.date.today().isoformat(),
    }


def main():
    """Measure what the command line says, print it and add a line to saving.csv."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--network", default="resnet18_v1")
    parser.add_argument("--optimizer", default="adam")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=RESULTS) as folder:  # a disk, where /tmp may be memory
        row = measure(args.network, args.optimizer, folder)
    for name, value in row.items():
        print(f"{name:24} {value}")
    write(SAVING, [*read(SAVING), row])


if __name__ == "__main__":
    main()
