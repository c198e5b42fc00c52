"""Where the images come from.

To add a source, write a function like ``cifar10`` below, and give its name to ``SOURCES`` and to
``--data`` in ``command_line/flags.py``. RecordIO files (``--data-train``) need no name.
"""

import hashlib
import os
from pathlib import Path

from gluon_dist.common.errors import UsageError
from gluon_dist.common.messages import warn

import mxnet as mx
import numpy as np

from sources import records, synthetic
from sources.addresses import CIFAR10
from sources.download import DownloadError, fetch
from sources.image_set import ImageSet
from sources.transform import Transform


class ImageSource:
    """The training and the test set, before they are split among the workers.

    Parameters
    ----------
    args : argparse.Namespace
        From :func:`command_line.parse.parse_args`.

    Attributes
    ----------
    name : str
        Name of the images, for the log.
    train, test : ImageSet
        RecordIO files that do not fit into memory are read at each use.
    fingerprint : str
        SHA-1 of the images and labels (for streamed files: their sizes), equal for equal data.

    Raises
    ------
    UsageError
        If the data is not available, or does not fit the options.
    """

    def __init__(self, args):
        self.transform = Transform(
            pad=args.pad_size,
            random_crop=bool(args.random_crop),
            random_mirror=bool(args.random_mirror),
            mean=args.rgb_mean,
            std=args.rgb_std,
            shape=args.image_shape if args.data_train else None,
        )
        if args.data_train:
            self.name, self.train, self.test = _read_records(args)
        else:
            if args.image_shape != (3, 32, 32):
                raise UsageError(
                    "--image-shape: CIFAR-10 is 3,32,32; other sizes need --data-train"
                )
            self.name, self.train, self.test = load_images(
                args.data, args.data_dir, args.num_examples
            )
        if isinstance(self.train.images, np.ndarray):
            _check_labels(self.train, self.test, self.name, args.num_classes)
            self.train = _first_examples(self.train, self.name, args.num_examples)
            self.fingerprint = _fingerprint([*self.train, *self.test])
        else:
            paths = self.train.images.paths + self.test.images.paths
            sizes = (str(os.path.getsize(path)) for path in paths)
            self.fingerprint = f"RecordIO files of {', '.join(sizes)} bytes"

    def sample(self, number):
        """Return up to ``number`` training images, scaled, the same on every worker.

        Returns
        -------
        ndarray of float32, shape (n, C, H, W)
        """
        images = self.train.images
        return self.transform.load(images, np.arange(min(number, len(images)))).asnumpy()


def load_images(source="auto", folder=None, num_examples=None):
    """Load the images of one of ``SOURCES``.

    Parameters
    ----------
    source : str
        A name in ``SOURCES``.
    folder : str, optional
        The folder of the files, present or downloaded; default: MXNet's own data folder.
    num_examples : int, optional
        How many training images are used; synthetic images are made only so far.

    Returns
    -------
    name : str
    train, test : ImageSet
        Images of shape (N, 3, 32, 32).
    """
    return SOURCES[source](folder, num_examples)


def cifar10_or_synthetic(folder, num_examples):
    """Load CIFAR-10; if that fails, warn and make synthetic images instead."""
    try:
        return _fetch_cifar10(folder)
    except UsageError:
        if folder:
            raise
    except DownloadError:
        pass
    warn(
        "CIFAR-10 was not found and could not be downloaded: training on synthetic images, "
        "whose accuracies are not comparable"
    )
    return synthetic_images(folder, num_examples)


def cifar10(folder, num_examples):
    """Load CIFAR-10 from a folder; download it first if it is not there."""
    try:
        return _fetch_cifar10(folder)
    except DownloadError as error:
        raise UsageError(str(error)) from None


def synthetic_images(folder, num_examples):
    """Make images from a seed."""
    train = synthetic.make_images(synthetic.NUM_TRAIN, seed=0, first=num_examples)
    return "synthetic images", train, synthetic.make_images(synthetic.NUM_TEST, seed=1)


SOURCES = {"auto": cifar10_or_synthetic, "cifar10": cifar10, "synthetic": synthetic_images}


def _fetch_cifar10(folder):
    """Read the binary version: a record is a label byte, then 3072 bytes in (C, H, W) order."""
    folder = fetch(folder or os.path.join(mx.base.data_dir(), "datasets", "cifar10"))
    rows = [np.fromfile(folder / name, np.uint8).reshape(-1, 3073) for name in CIFAR10.files]
    train, test = (
        ImageSet(part[:, 1:].reshape(-1, 3, 32, 32), part[:, 0].astype(np.int32))
        for part in (np.concatenate(rows[:5]), rows[5])
    )
    return "CIFAR-10", train, test


def _read_records(args):
    """Open RecordIO files, and decode their images if they fit into memory."""
    files = (
        records.RecordImages(args.data_train, args.image_shape, args.num_examples),
        records.RecordImages(args.data_val, args.image_shape),
    )
    train, test = (ImageSet(f, records.RecordLabels(f, args.num_classes)) for f in files)
    name = ", ".join(_name(f.paths) for f in files)
    whole = bool(args.random_crop)  # keep whole training images, to crop them in each epoch
    num_bytes = train.images.decoded_bytes(whole) + test.images.decoded_bytes()
    if num_bytes <= args.max_data_gb * 1e9:
        decoded = records.decode(*train, whole)
        if decoded:
            return name, decoded, records.decode(*test)
    return name, train, test


def _name(paths):
    more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
    return f"{Path(paths[0]).name}{more}"


def _check_labels(train, test, name, num_classes):
    """Raise a UsageError if a label is outside the classes."""
    highest = max(train.labels.max(), test.labels.max())
    if highest >= num_classes:
        raise UsageError(f"label {highest} of {name} is outside --num-classes {num_classes}")


def _first_examples(train, name, num_examples):
    """Return the training set that is used; raise a UsageError if it has too few examples."""
    available = len(train.labels)
    if num_examples and num_examples > available:
        raise UsageError(f"--num-examples {num_examples}: there are {available} ({name})")
    return train.first(num_examples)


def _fingerprint(arrays):
    digest = hashlib.sha1()
    for array in arrays:
        digest.update(np.ascontiguousarray(array))
    return digest.hexdigest()
