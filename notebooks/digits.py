"""The handwritten digits of the first three notebooks."""

import gzip
import hashlib
import os
import sys
import urllib.request
import zlib
from pathlib import Path
from typing import NamedTuple

import mxnet as mx
import numpy as np

# LeCun, Cortes and Burges: the sums are of the unpacked files.
FILES = {
    "train-images-idx3-ubyte": "c3557c10f29b266e19b3eeee1553c85e0ef4a8ea",
    "train-labels-idx1-ubyte": "adbf52269f5d842899f287c269e2883e40b4f6e2",
    "t10k-images-idx3-ubyte": "65e11ec1fd220343092a5070b58418b5c2644e26",
    "t10k-labels-idx1-ubyte": "a6d52cc628797e845885543326e9f10abb8a6f89",
}
ADDRESSES = (
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
)
TIMEOUT_S = 5


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
    try:
        parts = [_read(folder, name, sha1) for name, sha1 in FILES.items()]
    except (OSError, EOFError, zlib.error) as error:
        print(f"No MNIST ({error}): taking the digits of scikit-learn", file=sys.stderr)
        return _small_digits()
    return Digits("MNIST", *parts)


def _read(folder, name, sha1):
    """Read one file in MNIST's IDX format, after a download if it is not there."""
    path = folder / f"{name}.gz"
    packed = path.read_bytes() if path.exists() else _download(path.name)
    content = gzip.decompress(packed)
    if hashlib.sha1(content).hexdigest() != sha1:
        raise OSError(f"{path.name} is not MNIST's; if you have it, delete it")
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(f".{os.getpid()}")
        unfinished.write_bytes(packed)
        unfinished.replace(path)
    numbers = np.frombuffer(content, np.uint8)
    if "labels" in name:
        return numbers[8:].astype(np.int32)
    return numbers[16:].reshape(-1, 28, 28)


def _download(name):
    for address in ADDRESSES:
        try:
            with urllib.request.urlopen(address + name, timeout=TIMEOUT_S) as answer:
                return answer.read()
        except OSError as error:
            reason = error
    raise OSError(f"no download: {getattr(reason, 'reason', reason)}")


def _small_digits():
    """Digits of 8 by 8 pixels (Alpaydin and Kaynak 1998), enlarged to the size of MNIST's."""
    from sklearn import datasets

    digits = datasets.load_digits()
    ink = np.round(digits.images * 255 / 16).astype(np.uint8)
    images = np.pad(ink.repeat(3, axis=1).repeat(3, axis=2), ((0, 0), (2, 2), (2, 2)))
    labels = digits.target.astype(np.int32)
    return Digits("scikit-learn digits", images[:1500], labels[:1500], images[1500:], labels[1500:])
