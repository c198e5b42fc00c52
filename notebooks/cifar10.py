"""The images that the notebooks train the program on: a part of CIFAR-10, or what there is."""

import os
from pathlib import Path

import mxnet as mx

from helpers import ROOT, own_folder
from sources import images


def cifar10_words(num_examples, num_test):
    """Find images as the program does: CIFAR-10, else synthetic ones.

    Where ``TUTORIAL_DATA`` names a folder with RecordIO files of CIFAR-10, their first records are
    copied into a folder of this kernel's.

    Returns
    -------
    name : str
        What the images are.
    words : list of str
        The flags of ``cifar10_dist.py`` that choose them.
    """
    full = Path(os.environ.get("TUTORIAL_DATA", ""), "cifar10")
    if (full / "cifar10_train.rec").exists():
        folder = own_folder("cifar10")
        train = _cut(full / "cifar10_train.rec", num_examples, folder)
        test = _cut(full / "cifar10_val.rec", num_test, folder)
        return "CIFAR-10, JPEG copy", ["--data-train", train, "--data-val", test]
    name, count = images.load_images("auto")[0], ["--num-examples", str(num_examples)]
    return name, ["--data", "synthetic" if name == "synthetic images" else "auto", *count]


def _cut(path, count, folder):
    """Copy the first records of a shuffled file; return the copy's path, seen from the project."""
    copy = f"{folder}/{count}-{path.name}"
    reader = mx.recordio.MXRecordIO(str(path), "r")
    writer = mx.recordio.MXRecordIO(str(ROOT / copy), "w")
    for _ in range(count):
        writer.write(reader.read())
    writer.close()
    return copy
