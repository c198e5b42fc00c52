"""The data sets that can be downloaded: their files, SHA-1 sums and addresses."""

import gzip
import hashlib
import os
import zlib
from dataclasses import dataclass
from typing import Optional


@dataclass(frozen=True)
class Collection:
    """The files of a data set, their SHA-1 sums and where to get them.

    ``files`` maps their names to their SHA-1, ``urls`` are the folders to try. The sum of a packed
    file, ``NAME.gz``, is of what is inside, as gzip packs the same bytes in many ways. With
    ``archive``, all files come in one tar archive of that name, whose own sum is ``archive_sha1``.
    ``mirror`` is the folder in the mirror that the variable ``MXNET_GLUON_REPO`` names.
    """

    title: str
    files: dict
    urls: tuple
    archive: Optional[str] = None
    archive_sha1: Optional[str] = None
    mirror: Optional[str] = None

    @property
    def downloads(self):
        """The names of what to download: of the archive, or of each file."""
        return [self.archive] if self.archive else list(self.files)

    @property
    def sums(self):
        """The SHA-1 of each file, and of the archive, by name."""
        return {**self.files, self.archive: self.archive_sha1}

    def sum_of(self, name, data):
        """Return the SHA-1 of a file or of the archive; None of what gzip cannot unpack."""
        if name.endswith(".gz") and name != self.archive:
            try:
                data = gzip.decompress(data)
            except (OSError, EOFError, zlib.error):
                return None
        return hashlib.sha1(data).hexdigest()

    def addresses_of(self, name):
        """Return the addresses to try, the mirror first."""
        repo = os.environ.get("MXNET_GLUON_REPO")
        mirrors = [f"{repo.rstrip('/')}/{self.mirror}"] if repo and self.mirror else []
        return [f"{url}/{name}" for url in (*mirrors, *self.urls)]

    def advice(self, folder):
        """Return what to tell a user when no address works."""
        do = f"{'unpack' if self.archive else 'put'} {', '.join(self.downloads)} into {folder}"
        return f"no address gave {self.title}; where there is a network, {do}"


CIFAR10 = Collection(  # Krizhevsky 2009, binary version; the sums stand in MXNet's own loader too
    title="CIFAR-10",
    files={
        "data_batch_1.bin": "aadd24acce27caa71bf4b10992e9e7b2d74c2540",
        "data_batch_2.bin": "c0ba65cce70568cd57b4e03e9ac8d2a5367c1795",
        "data_batch_3.bin": "1dd00a74ab1d17a6e7d73e185b69dbf31242f295",
        "data_batch_4.bin": "aab85764eb3584312d3c7f65fd2fd016e36a258e",
        "data_batch_5.bin": "26e2849e66a845b7f1e4614ae70f4889ae604628",
        "test_batch.bin": "67eb016db431130d61cd03c7ad570b013799c88c",
    },
    urls=("https://www.cs.toronto.edu/~kriz", "http://www.cs.toronto.edu/~kriz"),
    archive="cifar-10-binary.tar.gz",
    archive_sha1="fab780a1e191a7eda0f345501ccd62d20f7ed891",
    mirror="gluon/dataset/cifar10",
)
MNIST = Collection(  # LeCun, Cortes and Burges
    title="MNIST",
    files={
        "train-images-idx3-ubyte.gz": "c3557c10f29b266e19b3eeee1553c85e0ef4a8ea",
        "train-labels-idx1-ubyte.gz": "adbf52269f5d842899f287c269e2883e40b4f6e2",
        "t10k-images-idx3-ubyte.gz": "65e11ec1fd220343092a5070b58418b5c2644e26",
        "t10k-labels-idx1-ubyte.gz": "a6d52cc628797e845885543326e9f10abb8a6f89",
    },
    urls=(
        "https://ossci-datasets.s3.amazonaws.com/mnist",
        "https://storage.googleapis.com/cvdf-datasets/mnist",
    ),
)
