"""Where the images come from: files at hand, a download, RecordIO files, or a seed."""

import hashlib
import os
import sys
from pathlib import Path

import mxnet as mx
import numpy as np
from loader import EvalLoader, RepeatedBatch, TrainLoader
from process.failure import UsageError

from sources import records, synthetic
from sources.augmentation import Augmentation
from sources.download import CIFAR10, DownloadError, fetch


class ImageSource:
    """The training and the test set, before they are split among the workers.

    Parameters
    ----------
    args : argparse.Namespace
        Of :func:`flags.parse_args`.

    Attributes
    ----------
    name : str
        What the images are, for the log.
    fingerprint : str
        SHA-1 of the images and labels (of a streamed file: its size), equal for equal data.

    Raises
    ------
    UsageError
        If the data cannot be had, or does not fit the options.
    """

    def __init__(self, args):
        self._args = args
        self.arrays = None  # train images, train labels, test images, test labels
        if args.data_train:
            self._open_records(args)
        else:
            if args.image_shape != (3, 32, 32):
                raise UsageError(
                    "--image-shape: CIFAR-10 is 3,32,32; other sizes need --data-train"
                )
            self.name, self.arrays = load_images(args.data, args.data_dir, args.num_examples)
            highest = max(self.arrays[1].max(), self.arrays[3].max())
            if highest >= args.num_classes:
                raise UsageError(
                    f"label {highest} of {self.name} is outside --num-classes {args.num_classes}"
                )
        if self.arrays:
            images, labels, *test = self.arrays
            if args.num_examples and args.num_examples > len(labels):
                raise UsageError(
                    f"--num-examples {args.num_examples}: {self.name} has {len(labels)}"
                )
            self.arrays = (images[: args.num_examples], labels[: args.num_examples], *test)
            self.fingerprint = _fingerprint(self.arrays)
        self.augmentation = Augmentation(
            args.pad_size,
            bool(args.random_crop),
            bool(args.random_mirror),
            args.rgb_mean,
            args.rgb_std,
        )

    def split(self, workers):
        """Create this worker's loaders.

        Parameters
        ----------
        workers : workers.Workers

        Returns
        -------
        train_loader, test_loader

        Raises
        ------
        UsageError
            If the data is smaller than one batch of all workers.
        """
        args = self._args
        share = (args.batch_size, workers.count, workers.rank)
        if self.arrays:
            images, labels, test_images, test_labels = self.arrays
            train = TrainLoader(images, labels, *share, args.seed, self.augmentation)
            test = EvalLoader(test_images, test_labels, *share, self.augmentation)
            length = len(labels)
        else:
            stream = (args.image_shape, args.num_classes, args.batch_size, workers)
            train = records.StreamLoader(
                args.data_train, *stream, args.seed, self.augmentation, args.num_examples
            )
            test = records.StreamEvalLoader(args.data_val, *stream, self.augmentation)
            length = train.num_examples
        if length < train.global_batch_size:
            raise UsageError(
                f"--batch-size {args.batch_size}: a step of {workers.count} worker(s) takes "
                f"{train.global_batch_size} examples, and there are {length} ({self.name})"
            )
        return (RepeatedBatch(train) if args.benchmark else train), test

    def _open_records(self, args):
        paths = args.data_train, args.data_val
        self.name = f"{Path(paths[0]).name}, {Path(paths[1]).name}"
        size = sum(records.decoded_bytes(path, args.image_shape) for path in paths)
        if size > args.max_data_gb * 1e9:
            sizes = ", ".join(str(os.path.getsize(path)) for path in paths)
            self.fingerprint = f"streamed files of {sizes} bytes"
            return
        train, test = (records.decode(path, args.image_shape, args.num_classes) for path in paths)
        self.arrays = (*train, *test)


def load_images(source="auto", folder=None, num_examples=None):
    """Load CIFAR-10, or the images that stand in for it.

    Parameters
    ----------
    source : {'auto', 'cifar10', 'synthetic'}
        ``auto`` takes the files in ``folder``, else a download, else makes images, with a warning.
    folder : str, optional
        MXNet's own data folder when not given.
    num_examples : int, optional
        How many training images are going to be used: no more are made.

    Returns
    -------
    name : str
    arrays : tuple
        Train images (N, 3, 32, 32) of uint8, train labels (N,) of int32, and those of the test set.
    """
    if source != "synthetic":
        own_folder = os.path.join(mx.base.data_dir(), "datasets", "cifar10")
        try:
            return "CIFAR-10", _read_cifar10(fetch(folder or own_folder))
        except UsageError:  # a folder that cannot be written
            if source == "cifar10" or folder:
                raise
        except DownloadError as error:
            if source == "cifar10":
                raise UsageError(str(error)) from None
        print(
            "cifar10_dist.py: warning: CIFAR-10 is not to be had here: training on self-made "
            "images, whose accuracies are not comparable",
            file=sys.stderr,
        )
    train = synthetic.make_images(synthetic.NUM_TRAIN, seed=0, first=num_examples)
    test = synthetic.make_images(synthetic.NUM_TEST, seed=1)
    return "self-made images", (*train, *test)


def _read_cifar10(folder):
    """Read the binary version: in each record a label byte, then 3072 bytes in (C, H, W) order."""
    rows = [np.fromfile(folder / name, np.uint8).reshape(-1, 3073) for name in CIFAR10.files]
    train, test = np.concatenate(rows[:5]), rows[5]
    arrays = []
    for part in (train, test):
        arrays += [part[:, 1:].reshape(-1, 3, 32, 32), part[:, 0].astype(np.int32)]
    return tuple(arrays)


def _fingerprint(arrays):
    digest = hashlib.sha1()
    for array in arrays:
        digest.update(np.ascontiguousarray(array))
    return digest.hexdigest()
