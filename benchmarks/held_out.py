#!/usr/bin/env python3
"""Split CIFAR-10's training images: every tenth to test on, the rest to train on.

python benchmarks/held_out.py DATA FOLDER

Settings are chosen with these files: the test images stay unseen.
"""

import sys
from pathlib import Path

import gluon_dist  # noqa: F401

from mxnet.recordio import MXRecordIO


def main(data, folder):
    Path(folder).mkdir(parents=True, exist_ok=True)
    train, test = (MXRecordIO(f"{folder}/cifar10_{kind}.rec", "w") for kind in ("train", "val"))
    records = MXRecordIO(f"{data}/cifar10_train.rec", "r")
    for number, record in enumerate(iter(records.read, None)):
        (train if number % 10 else test).write(record)
    train.close()
    test.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
