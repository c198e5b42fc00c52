"""Fetch files once per host, and use none whose SHA-1 is wrong."""

import contextlib
import fcntl
import http.client
import io
import tarfile
import tempfile
import time
import urllib.request
from pathlib import Path

from gluon_dist.common.errors import UsageError
from gluon_dist.common.messages import say

from sources.addresses import CIFAR10

TIMEOUT_S = 5  # to connect, and for each read
FAILURE_HOLDS_S = 60  # workers that waited for a failed download do not try again


class DownloadError(Exception):
    """No address gave the files, or the files are wrong."""


def fetch(folder, collection=CIFAR10, tell=say):
    """Return the folder with the files, after a download into ``folder`` if it has none.

    One process of a host downloads, the other processes wait. ``tell`` prints a line.

    Raises
    ------
    DownloadError
        If no address gave files with the right sums.
    UsageError
        If the folder cannot be read or written.
    """
    folder = Path(folder)
    if found := find_files(folder, collection, tell):
        return found
    with _locked(folder / ".lock"):
        if found := find_files(folder, collection, lambda line: None):  # another was faster
            return found
        failed = folder / ".download-failed"
        if failed.exists() and failed.stat().st_mtime > time.time() - FAILURE_HOLDS_S:
            raise DownloadError(failed.read_text(encoding="utf-8"))
        failed.unlink(missing_ok=True)
        try:
            _download(folder, collection, tell)
        except DownloadError as error:
            with contextlib.suppress(OSError):  # the disk may be full
                failed.write_text(str(error), encoding="utf-8")
            raise
    return folder


def find_files(folder, collection=CIFAR10, tell=say):
    """Return ``folder``, or a folder in it, where all files have the right sums; or None."""
    first = next(iter(collection.files))
    for path in [*folder.glob(first), *sorted(folder.glob(f"*/{first}"))]:
        try:
            for name in collection.files:
                _check(name, (path.parent / name).read_bytes(), collection)
            return path.parent
        except FileNotFoundError:
            continue
        except DownloadError:
            tell(f"{path.parent / name}: wrong SHA-1, not used")
        except OSError as error:
            raise UsageError(f"--data-dir {folder}: {error.filename}: {error.strerror}") from None
    return None


def _locked(path):
    """Return the open lock file, once this process has its lock."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = path.open("a")
    except OSError as error:
        raise UsageError(f"--data-dir {path.parent}: cannot be written: {error.strerror}") from None
    with contextlib.suppress(OSError):  # without locks each process downloads for itself
        fcntl.flock(lock, fcntl.LOCK_EX)
    return lock


def _download(folder, collection, tell):
    """Download what the collection has, each file from the first address that gives it right."""
    for name in collection.downloads:
        for url in collection.addresses_of(name):
            tell(f"downloading {url}")
            try:
                with urllib.request.urlopen(url, timeout=TIMEOUT_S) as response:
                    data = response.read()
                _check(name, data, collection)
                contents = unpack(data, collection.files) if collection.archive else {name: data}
                _save(contents, folder)
                break
            except (DownloadError, http.client.HTTPException, OSError) as error:
                tell(f"{url}: {getattr(error, 'reason', None) or error}")
        else:
            raise DownloadError(collection.advice(folder))


def unpack(archive, files):
    """Return the contents of the wanted files of a tar archive; its paths are not used."""
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        members = {Path(member.name).name: member for member in tar if member.isfile()}
        return {name: tar.extractfile(members[name]).read() for name in files}


def _save(contents, folder):
    """Write files to a temporary folder, then rename each to its name."""
    with tempfile.TemporaryDirectory(dir=folder, prefix=".part-") as part:
        for name, data in contents.items():
            Path(part, name).write_bytes(data)
            Path(part, name).replace(folder / name)


def _check(name, data, collection):
    found, wanted = collection.sum_of(name, data), collection.sums[name]
    if found != wanted:
        raise DownloadError(f"wrong SHA-1 {found}, not {wanted}")
