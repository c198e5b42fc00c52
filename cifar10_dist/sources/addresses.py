"""The data sets that can be downloaded: their files, SHA-1 sums and addresses."""

import os
from dataclasses import dataclass


@dataclass(frozen=True)
class Collection:
    """Files that belong together.

    ``files`` maps their names to their SHA-1, ``urls`` are the folders to try. With ``archive``,
    all files come in one tar archive of that name, whose own sum is ``archive_sha1``. ``mirror`` is
    the folder in the mirror that the environment variable ``MXNET_GLUON_REPO`` names.
    """

    title: str
    files: dict
    urls: tuple
    archive: str = None
    archive_sha1: str = None
    mirror: str = None

    @property
    def downloads(self):
        """What to download: name and SHA-1 of each file, or of the archive."""
        return {self.archive: self.archive_sha1} if self.archive else self.files

    def addresses_of(self, name):
        """Return the addresses to try, the mirror first."""
        repo = os.environ.get("MXNET_GLUON_REPO")
        mirrors = [f"{repo.rstrip('/')}/{self.mirror}"] if repo and self.mirror else []
        return [f"{url}/{name}" for url in (*mirrors, *self.urls)]

    def advice(self, folder):
        """Return what to tell a user when no address works."""
        do = f"{'unpack' if self.archive else 'put'} {', '.join(self.downloads)} into {folder}"
        return f"no address gave {self.title}; where there is a network, {do}"


# The sums are those in MXNet's own loaders, mxnet.gluon.data.vision.CIFAR10 and MNIST.
CIFAR10 = Collection(  # Krizhevsky 2009, binary version
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
        "train-images-idx3-ubyte.gz": "6c95f4b05d2bf285e1bfb0e7960c31bd3b3f8a7d",
        "train-labels-idx1-ubyte.gz": "2a80914081dc54586dbdf242f9805a6b8d2a15fc",
        "t10k-images-idx3-ubyte.gz": "c3a25af1f52dad7f726cce8cacb138654b760d48",
        "t10k-labels-idx1-ubyte.gz": "763e7fa3757d93b0cdec073cef058b2004252c17",
    },
    urls=(
        "https://ossci-datasets.s3.amazonaws.com/mnist",
        "https://storage.googleapis.com/cvdf-datasets/mnist",
    ),
)
