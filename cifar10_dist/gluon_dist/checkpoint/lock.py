"""The prefix of checkpoints: its folder takes files, and one job at a time writes there."""

import contextlib
import datetime
import errno
import fcntl
import json
import os
import shutil
import socket
import tempfile
import time
from pathlib import Path

from gluon_dist.common.errors import UsageError
from gluon_dist.common.messages import warn
from gluon_dist.setup import environment

OPTION = "--model-prefix"  # of cifar10_dist.py
LOST_S = 30  # after which a process on a host that the launcher has lost has ended by itself


def check_prefix(prefix, option=OPTION):
    """Make the folder of ``prefix`` and see that it takes files, before any time is spent.

    ``option`` is how the user knows the prefix, for messages.
    """
    folder = Path(prefix).parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        reason = "Not a directory" if isinstance(error, FileExistsError) else error.strerror
        raise UsageError(f"{option} {prefix}: cannot write to {folder}: {reason}") from None


def staging_folder(prefix):
    """Return the folder in which a checkpoint is written before its files get their names.

    All checkpoints of a prefix use the same one: so what a killed process left there is found.
    """
    return Path(prefix).parent / f".{Path(prefix).name}.saving"


@contextlib.contextmanager
def hold(prefix, option=OPTION):
    """Keep other jobs from writing checkpoints of ``prefix``; worker 0 alone does this.

    The lock is the system's: it goes with the process, however that ends, and on NFS it holds for
    all hosts. The file only names the holder, and what a killed process left of it blocks nobody.

    Raises
    ------
    UsageError
        If another job holds it.
    """
    path = Path(prefix).parent / f".{Path(prefix).name}.lock"
    lock = _lock(path, f"{option} {prefix}")
    try:
        _describe_holder(lock)
        shutil.rmtree(staging_folder(prefix), ignore_errors=True)  # of a process that was killed
        yield
    finally:
        with contextlib.suppress(FileNotFoundError):
            path.unlink()
        os.close(lock)


def _lock(path, what):
    """Return a descriptor of the locked file: by lockf, which more shared disks have than flock."""
    end = time.monotonic() + LOST_S
    while True:
        try:
            lock = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as error:
            raise UsageError(f"{what}: {path}: {error.strerror}") from None
        try:
            fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in (errno.EACCES, errno.EAGAIN):
                warn(f"{path}: {error.strerror}: see yourself that no other job has this prefix")
                return lock
            holder = _holder(lock)
            if not environment.job_id() or holder.get("job") != environment.job_id():
                os.close(lock)
                raise UsageError(_is_taken(what, path, holder)) from None
            if time.monotonic() > end:
                warn(f"{path}: still locked by an earlier try of this job: going on without it")
                return lock
        else:
            if _is_in_place(lock, path):
                return lock
        os.close(lock)
        time.sleep(0.1)


def _is_in_place(lock, path):
    """Return whether others will find this file: a holder removes it when it goes."""
    try:
        return os.path.samestat(os.fstat(lock), os.stat(path))
    except FileNotFoundError:
        return False


def _describe_holder(lock):
    now = datetime.datetime.now().astimezone().isoformat(sep=" ", timespec="seconds")
    holder = {"host": socket.gethostname(), "process": os.getpid(), "since": now}
    with contextlib.suppress(OSError):  # a full disk
        os.ftruncate(lock, 0)
        os.pwrite(lock, json.dumps(dict(holder, job=environment.job_id())).encode() + b"\n", 0)


def _holder(lock):
    """Read who holds the lock; empty if that is not written yet."""
    try:
        return dict(json.loads(os.pread(lock, 4096, 0)))
    except (OSError, ValueError, TypeError):
        return {}


def _is_taken(what, path, holder):
    """Return the message that another job holds the lock."""
    who = "another job"
    if holder:
        job = f"job {holder['job']}, " if holder.get("job") else ""
        who = f"{job}process {holder.get('process')} on {holder.get('host')}, "
        who += f"since {holder.get('since')},"
    return (
        f"{what}: {who} is saving there: wait for its end, or take another prefix "
        f"(if that host is gone for good, remove {path})"
    )
