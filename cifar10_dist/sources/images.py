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
from sources.transform import Transform


class ImageSource:
    """The training and the test set, before they are split among the workers.

    Parameters
    ----------
    args : argparse.Namespace
        From :func:`parse.parse_args`.

    Attributes
    ----------
    name : str
        Name of the images, for the log.
    arrays : tuple of ndarray, or of RecordImages and RecordLabels
        Train images (N, C, H, W) of uint8, train labels (N,) of int32, and those of the test set.
        If they do not fit into memory, they are read from the files at each use.
    fingerprint : str
        SHA-1 of the images and labels (for streamed files: their sizes), equal for equal data.

    Raises
    ------
    UsageError
        If the data is not available, or does not fit the options.
    """

    def __init__(self, args):
        self.transform = Transform(
            args.pad_size,
            bool(args.random_crop),
            bool(args.random_mirror),
            args.rgb_mean,
            args.rgb_std,
            args.image_shape if args.data_train else None,
        )
        if args.data_train:
            self.name, self.arrays = _read_records(args)
        else:
            if args.image_shape != (3, 32, 32):
                raise UsageError(
                    "--image-shape: CIFAR-10 is 3,32,32; other sizes need --data-train"
                )
            self.name, self.arrays = load_images(args.data, args.data_dir, args.num_examples)
        if isinstance(self.arrays[0], np.ndarray):
            self.arrays = _fit(self.arrays, self.name, args)
            self.fingerprint = _fingerprint(self.arrays)
        else:
            paths = [path for images in self.arrays[::2] for path in images.paths]
            sizes = (str(os.path.getsize(path)) for path in paths)
            self.fingerprint = f"RecordIO files of {', '.join(sizes)} bytes"

    def sample(self, number):
        """Return up to ``number`` training images, scaled, the same on every worker.

        Returns
        -------
        ndarray of float32, shape (n, C, H, W)
        """
        images = self.arrays[0]
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
    arrays : tuple
        Train images (N, 3, 32, 32) of uint8, train labels (N,) of int32, and those of the test set.
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
    test = synthetic.make_images(synthetic.NUM_TEST, seed=1)
    return "synthetic images", (*train, *test)


SOURCES = {"auto": cifar10_or_synthetic, "cifar10": cifar10, "synthetic": synthetic_images}


def _fetch_cifar10(folder):
    """Read the binary version: a record is a label byte, then 3072 bytes in (C, H, W) order."""
    place = fetch(folder or os.path.join(mx.base.data_dir(), "datasets", "cifar10"))
    rows = [np.fromfile(place / name, np.uint8).reshape(-1, 3073) for name in CIFAR10.files]
    arrays = []
    for part in np.concatenate(rows[:5]), rows[5]:
        arrays += [part[:, 1:].reshape(-1, 3, 32, 32), part[:, 0].astype(np.int32)]
    return "CIFAR-10", tuple(arrays)


def _read_records(args):
    """Open RecordIO files, and decode their images if they fit into memory."""
    train = records.RecordImages(args.data_train, args.image_shape, args.num_examples)
    test = records.RecordImages(args.data_val, args.image_shape)
    name = ", ".join(map(_name, (train.paths, test.paths)))
    pairs = [(images, records.RecordLabels(images, args.num_classes)) for images in (train, test)]
    whole = bool(args.random_crop)  # of the training images
    if train.decoded_bytes(whole) + test.decoded_bytes() <= args.max_data_gb * 1e9:
        decoded = records.decode(*pairs[0], whole)
        if decoded:
            pairs = decoded, records.decode(*pairs[1])
    return name, (*pairs[0], *pairs[1])


def _name(paths):
    more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
    return f"{Path(paths[0]).name}{more}"


def _fit(arrays, name, args):
    """Check labels and number of the examples; return the examples to use."""
    images, labels, test_images, test_labels = arrays
    highest = max(labels.max(), test_labels.max())
    if highest >= args.num_classes:
        raise UsageError(f"label {highest} of {name} is outside --num-classes {args.num_classes}")
    if args.num_examples and args.num_examples > len(labels):
        raise UsageError(f"--num-examples {args.num_examples}: there are {len(labels)} ({name})")
    return images[: args.num_examples], labels[: args.num_examples], test_images, test_labels


def _fingerprint(arrays):
    digest = hashlib.sha1()
    for array in arrays:
        digest.update(np.ascontiguousarray(array))
    return digest.hexdigest()
