"""Fetch files once a host, and take nothing whose SHA-1 is wrong."""

import contextlib
import fcntl
import gzip
import hashlib
import http.client
import os
import shutil
import tarfile
import tempfile
import time
import urllib.request
import zlib
from dataclasses import dataclass
from pathlib import Path

from ground.failure import UsageError
from ground.messages import say


@dataclass(frozen=True)
class Collection:
    """Files that belong together.

    ``files`` (name to SHA-1) says what is right, ``urls`` where to look. With ``archive``, the
    files come in one tar archive of that name, whose own sum is ``archive_sha1``. Without it, each
    is downloaded and kept as ``name.gz``; the sum is of what is inside, as gzip writes the same
    bytes in many ways.
    """

    title: str
    files: dict
    urls: tuple  # of folders
    archive: str = None
    archive_sha1: str = None

    def stored(self):
        """Return the names that the files have on disk, each with its SHA-1."""
        if self.archive:
            return self.files
        return {f"{name}.gz": sha1 for name, sha1 in self.files.items()}


CIFAR10 = Collection(  # Krizhevsky 2009, binary version; the same sums stand in MXNet's own loader
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
)
MNIST = Collection(  # LeCun, Cortes and Burges
    title="MNIST",
    files={
        "train-images-idx3-ubyte": "c3557c10f29b266e19b3eeee1553c85e0ef4a8ea",
        "train-labels-idx1-ubyte": "adbf52269f5d842899f287c269e2883e40b4f6e2",
        "t10k-images-idx3-ubyte": "65e11ec1fd220343092a5070b58418b5c2644e26",
        "t10k-labels-idx1-ubyte": "a6d52cc628797e845885543326e9f10abb8a6f89",
    },
    urls=(
        "https://ossci-datasets.s3.amazonaws.com/mnist",
        "https://storage.googleapis.com/cvdf-datasets/mnist",
    ),
)
TIMEOUT_S = 5  # to connect, and between two pieces
REMAINS_S = 3600  # without a change: nobody is at it any more
FAILURE_HOLDS_S = 60  # workers that waited for a download that failed do not try again


class DownloadError(Exception):
    """No address gave the files."""


def find_files(folder, collection=CIFAR10, tell=say):
    """Return the folder that holds all files with the right sums, or None.

    ``folder`` itself or one in it, as the archive unpacks. ``tell`` is called with a line that
    names a file whose sum is wrong.
    """
    files, is_gzip = collection.stored(), not collection.archive
    first = next(iter(files))
    for path in sorted(Path(folder).glob(first)) + sorted(Path(folder).glob(f"*/{first}")):
        place = path.parent
        if all((place / name).is_file() for name in files):
            wrong = [name for name, sha1 in files.items() if _sha1(place / name, is_gzip) != sha1]
            if not wrong:
                return place
            tell(f"{place / wrong[0]}: wrong SHA-1, not used")
    return None


def fetch(folder, collection=CIFAR10, tell=say):
    """Have a collection in ``folder``: find it, or download it, one process of a host at a time.

    Parameters
    ----------
    folder : str or Path
        Made if missing.
    collection : Collection
        ``MXNET_GLUON_REPO``, where set, names a mirror of CIFAR-10 to try first.
    tell : callable
        Called with each line about a wrong file, a download, or an address that failed.

    Returns
    -------
    Path
        The folder with the files.

    Raises
    ------
    DownloadError
        If no address gave files with the right sums.
    UsageError
        If the folder cannot be written.
    """
    started = time.time()
    folder = Path(folder)
    place = _find(folder, collection, tell)
    if place:
        return place
    with _lock(folder) as is_ours:
        place = _find(folder, collection, lambda line: None)  # another may have fetched it by now
        if place:
            return place
        if is_ours:
            _remove_remains(folder)
        failed = folder / ".download-failed"
        if failed.exists() and failed.stat().st_mtime > started - FAILURE_HOLDS_S:
            raise DownloadError(failed.read_text())
        try:
            _download(folder, collection, tell)
        except DownloadError as error:
            with contextlib.suppress(OSError):  # a full disk, of which the error tells
                failed.write_text(str(error))
            raise
        with contextlib.suppress(FileNotFoundError):
            failed.unlink()
        return folder


def unpack(archive, folder, files):
    """Take the wanted files out of a tar archive, each under its name only when complete.

    Raises
    ------
    DownloadError
        If a member would leave the folder, or a wanted file is missing or wrong.
    """
    with tarfile.open(archive) as tar:
        members = tar.getmembers()
        for member in members:
            path = Path(member.name)
            if path.is_absolute() or ".." in path.parts or member.issym() or member.islnk():
                raise DownloadError(f"{archive}: refused, member {member.name!r} leaves the folder")
        found = {Path(m.name).name: m for m in members if m.isfile()}
        for name, sha1 in files.items():
            if name not in found:
                raise DownloadError(f"{archive}: {name} is not in it")
            data = tar.extractfile(found[name]).read()
            if hashlib.sha1(data).hexdigest() != sha1:
                raise DownloadError(f"{archive}: {name} has the wrong SHA-1")
            with _written_whole(Path(folder) / name) as file:
                file.write(data)


def _download(folder, collection, tell):
    urls = collection.urls
    mirror = os.environ.get("MXNET_GLUON_REPO")
    if mirror and collection is CIFAR10:
        urls = (f"{mirror.rstrip('/')}/gluon/dataset/cifar10", *urls)
    wanted = [collection.archive] if collection.archive else list(collection.stored())
    for name in wanted:
        if not any(_download_file(f"{url}/{name}", folder, collection, tell) for url in urls):
            raise DownloadError(
                f"no address gave {collection.title}; where there is a network, "
                f"{'unpack' if collection.archive else 'put'} {', '.join(wanted)} into {folder}"
            )


def _download_file(url, folder, collection, tell):
    """Download the archive, or one file; return whether that is right and in place."""
    try:
        tell(f"downloading {url}")
        with tempfile.NamedTemporaryFile(dir=folder, prefix=".download-") as file:
            with urllib.request.urlopen(url, timeout=TIMEOUT_S) as response:
                shutil.copyfileobj(response, file, 1 << 20)
            file.flush()
            if collection.archive:
                _check(file.name, collection.archive_sha1, is_gzip=False)
                unpack(file.name, folder, collection.files)
            else:
                name = url.rpartition("/")[2]
                _check(file.name, collection.stored()[name], is_gzip=True)
                with _written_whole(folder / name) as whole, open(file.name, "rb") as right:
                    shutil.copyfileobj(right, whole)
        return True
    except (DownloadError, tarfile.TarError, http.client.HTTPException, OSError) as error:
        tell(f"{url}: {getattr(error, 'reason', None) or error}")
        return False


def _check(path, sha1, is_gzip):
    found = _sha1(path, is_gzip)
    if found != sha1:
        raise DownloadError(f"wrong SHA-1 {found}, not {sha1}")


@contextlib.contextmanager
def _lock(folder):
    """Hold the folder's lock, if its file system has locks; a process that dies lets go of it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = open(folder / ".lock", "w")  # noqa: SIM115  closed below
    except OSError as error:
        raise UsageError(f"--data-dir {folder}: cannot be written: {error.strerror}") from None
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
        except OSError:  # each downloads for itself
            yield False
            return
        yield True


def _find(folder, collection, tell):
    try:
        return find_files(folder, collection, tell)
    except OSError as error:
        raise UsageError(f"--data-dir {folder}: {error.filename}: {error.strerror}") from None


def _remove_remains(folder):
    """Remove what a download left that was killed; another host's lock may not be seen here."""
    before = time.time() - REMAINS_S
    for path in [*folder.glob(".download-*"), *folder.glob(".part-*")]:
        with contextlib.suppress(OSError):
            if path.name != ".download-failed" and path.stat().st_mtime < before:
                path.unlink()


@contextlib.contextmanager
def _written_whole(path):
    """Give a file that gets its name when all is written."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".part-")
    try:
        with open(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o644)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


def _sha1(path, is_gzip):
    """Return the sum of a file's bytes, or of those inside a gzip file."""
    digest = hashlib.sha1()
    with gzip.open(path) if is_gzip else open(path, "rb") as file:
        try:
            for block in iter(lambda: file.read(1 << 20), b""):
                digest.update(block)
        except (gzip.BadGzipFile, EOFError, zlib.error):
            return "of no gzip file"
    return digest.hexdigest()
