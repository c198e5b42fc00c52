"""Fetch CIFAR-10 once a host, and take nothing that is not CIFAR-10."""

import contextlib
import fcntl
import hashlib
import http.client
import os
import sys
import tarfile
import tempfile
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from process.failure import UsageError


@dataclass(frozen=True)
class Collection:
    """Files that come in one tar archive.

    ``archive_sha1`` and ``files`` (name to SHA-1) say what is right, ``urls`` where to look.
    """

    title: str
    archive_sha1: str
    files: dict
    urls: tuple


ARCHIVE = "cifar-10-binary.tar.gz"
CIFAR10 = Collection(  # Krizhevsky 2009, binary version; the same sums stand in MXNet's own loader
    title="CIFAR-10",
    archive_sha1="fab780a1e191a7eda0f345501ccd62d20f7ed891",
    files={
        "data_batch_1.bin": "aadd24acce27caa71bf4b10992e9e7b2d74c2540",
        "data_batch_2.bin": "c0ba65cce70568cd57b4e03e9ac8d2a5367c1795",
        "data_batch_3.bin": "1dd00a74ab1d17a6e7d73e185b69dbf31242f295",
        "data_batch_4.bin": "aab85764eb3584312d3c7f65fd2fd016e36a258e",
        "data_batch_5.bin": "26e2849e66a845b7f1e4614ae70f4889ae604628",
        "test_batch.bin": "67eb016db431130d61cd03c7ad570b013799c88c",
    },
    urls=(
        f"https://www.cs.toronto.edu/~kriz/{ARCHIVE}",
        f"http://www.cs.toronto.edu/~kriz/{ARCHIVE}",
    ),
)
TIMEOUT_S = 5  # to connect, and between two pieces
REMAINS_S = 3600  # without a change: nobody is at it any more
FAILURE_HOLDS_S = 60  # workers that waited for a download that failed do not try again


class DownloadError(Exception):
    """No address gave the archive."""


def find_files(folder, collection=CIFAR10):
    """Return the folder that holds all files with the right sums, or None.

    ``folder`` itself or one in it, as the archive unpacks. A file whose sum is wrong is named on
    standard error.
    """
    first = next(iter(collection.files))
    for path in sorted(Path(folder).glob(first)) + sorted(Path(folder).glob(f"*/{first}")):
        place = path.parent
        if all((place / name).is_file() for name in collection.files):
            wrong = [name for name, sha1 in collection.files.items() if _sha1(place / name) != sha1]
            if not wrong:
                return place
            _say(f"{place / wrong[0]}: wrong SHA-1, not used")
    return None


def fetch(folder, collection=CIFAR10):
    """Have a collection in ``folder``: find it, or download it, one process of a host at a time.

    Parameters
    ----------
    folder : str or Path
        Made if missing.
    collection : Collection
        ``MXNET_GLUON_REPO``, where set, names a mirror of CIFAR-10 to try first.

    Returns
    -------
    Path
        The folder with the files.

    Raises
    ------
    DownloadError
        If no address gave an archive with the right sum.
    UsageError
        If the folder cannot be written.
    """
    started = time.time()
    folder = Path(folder)
    place = _find(folder, collection)
    if place:
        return place
    with _lock(folder) as is_ours:
        place = _find(folder, collection)  # another worker may have fetched it meanwhile
        if place:
            return place
        if is_ours:
            _remove_remains(folder)
        failed = folder / ".download-failed"
        if failed.exists() and failed.stat().st_mtime > started - FAILURE_HOLDS_S:
            raise DownloadError(failed.read_text())
        try:
            _download(folder, collection)
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


def _download(folder, collection):
    mirror = os.environ.get("MXNET_GLUON_REPO")
    urls = collection.urls
    if mirror and collection is CIFAR10:
        urls = (f"{mirror.rstrip('/')}/gluon/dataset/cifar10/{ARCHIVE}", *urls)
    for url in urls:
        try:
            _say(f"downloading {url}")
            with tempfile.NamedTemporaryFile(dir=folder, prefix=".download-") as file:
                sha1 = _copy(url, file)
                if sha1 != collection.archive_sha1:
                    raise DownloadError(f"wrong SHA-1 {sha1}, not {collection.archive_sha1}")
                unpack(file.name, folder, collection.files)
            return
        except (DownloadError, tarfile.TarError, http.client.HTTPException, OSError) as error:
            _say(f"{url}: {getattr(error, 'reason', None) or error}")
    raise DownloadError(
        f"no address gave {collection.title}; where there is a network, unpack "
        f"{Path(collection.urls[0]).name} into {folder}"
    )


def _copy(url, file):
    """Write what an address gives to a file, and return its SHA-1."""
    digest = hashlib.sha1()
    with urllib.request.urlopen(url, timeout=TIMEOUT_S) as response:
        for block in iter(lambda: response.read(1 << 20), b""):
            digest.update(block)
            file.write(block)
    file.flush()
    return digest.hexdigest()


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


def _find(folder, collection):
    try:
        return find_files(folder, collection)
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


def _sha1(path):
    digest = hashlib.sha1()
    with open(path, "rb") as file:
        for block in iter(lambda: file.read(1 << 20), b""):
            digest.update(block)
    return digest.hexdigest()


def _say(text):
    print(f"cifar10_dist.py: {text}", file=sys.stderr, flush=True)
