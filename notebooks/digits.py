"""The handwritten digits of the first three notebooks."""

import gzip
import os
import sys
from pathlib import Path
from typing import NamedTuple

from gluon_dist.common.errors import UsageError

import mxnet as mx
import numpy as np

from sources.addresses import MNIST
from sources.download import DownloadError, fetch


class Digits(NamedTuple):
    """Images as uint8 (n, 28, 28), where 0 is paper and 255 is ink; labels as int32 (n,)."""

    name: str
    train_images: np.ndarray
    train_labels: np.ndarray
    test_images: np.ndarray
    test_labels: np.ndarray


def load_digits(folder=None):
    """Load MNIST, or the 1,797 digits that come with scikit-learn where it cannot be had.

    Parameters
    ----------
    folder : str, optional
        Where the four files of MNIST are or go. Default: ``mnist`` in the folder that the
        environment variable ``TUTORIAL_DATA`` names, else MXNet's own folder.

    Returns
    -------
    Digits
    """
    own = os.path.join(mx.base.data_dir(), "datasets")
    folder = Path(folder or Path(os.environ.get("TUTORIAL_DATA", own), "mnist"))
    told = []
    try:
        place = fetch(folder, MNIST, told.append)
    except (DownloadError, UsageError) as error:
        problems = [line for line in told if not line.startswith("downloading")] or [str(error)]
        print(
            f"No MNIST ({'; '.join(problems)}): taking the digits of scikit-learn", file=sys.stderr
        )
        return _small_digits()
    return Digits("MNIST", *(_read(place / name) for name in MNIST.files))


def _read(path):
    """Read a packed file in MNIST's IDX format: 16 bytes before images, 8 before labels."""
    numbers = np.frombuffer(gzip.decompress(path.read_bytes()), np.uint8)
    if "labels" in path.name:
        return numbers[8:].astype(np.int32)
    return numbers[16:].reshape(-1, 28, 28)


def _small_digits():
    """Return digits of 8 by 8 pixels (Alpaydin and Kaynak 1998), enlarged to MNIST's size."""
    from sklearn import datasets

    digits = datasets.load_digits()
    ink = np.round(digits.images * 255 / 16).astype(np.uint8)
    images = np.pad(ink.repeat(3, axis=1).repeat(3, axis=2), ((0, 0), (2, 2), (2, 2)))
    labels = digits.target.astype(np.int32)
    return Digits("scikit-learn digits", images[:1500], labels[:1500], images[1500:], labels[1500:])
