"""Checkpoints on disk: written so that a crash leaves none half-valid, read only if whole.

    PREFIX-symbol.json      the network       both as MXNet has them: ``gluon.SymbolBlock.imports``
    PREFIX-0003.params      the parameters    and ``mx.model.load_checkpoint`` read them
    PREFIX-0003.state       what else the training has: arrays in NumPy's format, no pickles
    PREFIX-0003.json        the manifest: where in the training, and the SHA-256 of the files above

``0003`` counts finished epochs; ``0003-00017`` is 17 steps into the fourth. The files are written
beside their place, flushed and renamed, the manifest last: it alone makes them a checkpoint.
"""

import contextlib
import datetime
import errno
import hashlib
import io
import os
import re
import shlex
import shutil
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Optional

from gluon_dist.checkpoint.lock import staging_folder
from gluon_dist.checkpoint.manifest import Broken, Manifest
from gluon_dist.common.finite import first_not_finite

import mxnet as mx
import numpy as np


@dataclass
class Entry:
    """A checkpoint of which only the manifest was read; ``error`` says why that failed."""

    name: str  # path without what follows the tag, "out/model-0003"
    epoch: int
    step: int
    manifest: Optional[Manifest] = None
    error: Optional[str] = None

    def recency(self):
        """Sort key: the run that began last comes last, within a run the position counts."""
        run = self.manifest.run if self.manifest else "~"  # cannot be known: taken for the last
        return run, self.epoch, self.step


def tag(epoch, step=0):
    """Return the part of the file names that says how far the training was."""
    return f"{epoch:04d}-{step:05d}" if step else f"{epoch:04d}"


def find(prefix):
    """Return the checkpoints of a prefix, as a list of :class:`Entry`, the newest first.

    If there is none, but MXNet itself has saved parameters, the newest are an entry with an error.
    """
    target, ours, others = Path(prefix), [], []
    pattern = re.compile(re.escape(target.name) + r"(-(\d{4,})(?:-(\d{5,}))?)\.(json|params)")
    names = os.listdir(target.parent) if target.parent.is_dir() else []
    for match in filter(None, map(pattern.fullmatch, names)):
        name = target.name + match[1]
        entry = Entry(str(target.parent / name), int(match[2]), int(match[3] or 0))
        if match[4] == "json":
            try:
                entry.manifest = Manifest.read(entry.name)
            except Broken as error:
                entry.error = str(error)
            ours.append(entry)
        elif f"{name}.state" not in names:  # else this program was killed while it saved
            entry.error = without_manifest(entry.name)
            others.append(entry)
    ours, others = (sorted(x, key=Entry.recency, reverse=True) for x in (ours, others))
    return ours or others[:1]


def without_manifest(name):
    """Say what to do with ``NAME.params`` that have no manifest."""
    prefix = re.sub(r"-\d+(-\d+)?$", "", name)
    return (
        f"{name}.params has no manifest ({name}.json): if mx.mod.Module or MXNet saved it, "
        f"convert it: python tools/convert_module.py {shlex.quote(name)}.params "
        f"--model-prefix {shlex.quote(prefix)}-converted"
    )


def read(name, manifest):
    """Read the files of a checkpoint.

    Returns
    -------
    params, state : bytes
        For :func:`parse_params` and :func:`parse_state`.

    Raises
    ------
    Broken
        If a file is not the one that was saved.
    """
    return _read_file(f"{name}.params", manifest), _read_file(f"{name}.state", manifest)


def read_file(path):
    """Return what is in a file; raise :class:`Broken` if it cannot be read."""
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise Broken(f"{path}: {error.strerror}") from None


def parse_params(content):
    """Return the parameters by name, without the ``arg:`` or ``aux:`` before it.

    Raises
    ------
    ValueError
        If they are no parameters that a training can go on from.
    """
    loaded = mx.nd.load_frombuffer(content)
    if not isinstance(loaded, dict):
        raise ValueError("arrays without names")
    bad = first_not_finite(loaded.items())
    if bad:
        raise ValueError(f"{bad} is not finite")
    return {re.sub("^(arg|aux):", "", name): value for name, value in loaded.items()}


def parse_state(content):
    """Return the arrays of a ``.state`` file by name; a pickle in it is an error."""
    if not content:
        return {}
    with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
        return {name: arrays[name] for name in arrays.files}


def write(prefix, manifest, symbol, params, arrays):
    """Write a checkpoint, whole or not at all.

    Parameters
    ----------
    prefix : str
    manifest : Manifest
        Gets ``files`` and ``saved``.
    symbol : str or None
        JSON of the network; without it there is no such file.
    params : dict of NDArray
        ``arg:`` and ``aux:`` before the names, on the CPU.
    arrays : dict of NDArray

    Returns
    -------
    str
        The files' common path, ``PREFIX-0003``.

    Raises
    ------
    OSError, mxnet.MXNetError
        If the disk is full, say; nothing half-written is left, and older checkpoints are whole.
    """
    staging, folder = staging_folder(prefix), Path(prefix).parent
    name = f"{Path(prefix).name}-{tag(manifest.epoch, manifest.step)}"
    in_place = []
    shutil.rmtree(staging, ignore_errors=True)
    try:
        staging.mkdir()
        mx.nd.save(str(staging / f"{name}.params"), params)
        _save_arrays(staging / f"{name}.state", arrays)
        if symbol:
            symbol_name = f"{Path(prefix).name}-symbol.json"
            (staging / symbol_name).write_text(symbol, encoding="utf-8")
        now = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
        manifest.saved = now
        manifest.files = {path.name: _flush_and_hash(path) for path in sorted(staging.iterdir())}
        # MXNet closes its file without checking that the last bytes were written.
        parse_params((staging / f"{name}.params").read_bytes())
        manifest.write(staging / f"{name}.json")
        _flush_and_hash(staging / f"{name}.json")

        _unlink(folder / f"{name}.json")  # of an earlier checkpoint with this name
        _flush_folder(folder)
        for file_name in reversed([*manifest.files]):  # .state before .params, see find
            os.replace(staging / file_name, folder / file_name)
            in_place.append(folder / file_name)
        _flush_folder(folder)
        os.replace(staging / f"{name}.json", folder / f"{name}.json")
        _flush_folder(folder)
    except BaseException:
        for path in in_place:
            if not path.name.endswith("-symbol.json"):  # older checkpoints have the same
                _unlink(path)
        raise
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    return str(folder / name)


def remove(entry):
    """Remove a checkpoint, the manifest first; what is gone already is no error."""
    for ending in ("json", "params", "state"):
        _unlink(Path(f"{entry.name}.{ending}"))


def _save_arrays(path, arrays):
    """Write what ``np.load`` reads; ``np.savez`` tells of a full disk a second time, too late."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, value in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                np.lib.format.write_array(file, value.asnumpy(), allow_pickle=False)


def _read_file(path, manifest):
    """Return what is in a file; raise :class:`Broken` unless it is what the manifest says."""
    expected = manifest.files.get(Path(path).name, {})
    content = read_file(path)
    if len(content) < expected.get("bytes", 0):
        raise Broken(f"{path}: cut short: {len(content)} of {expected['bytes']} bytes")
    if hashlib.sha256(content).hexdigest() != expected.get("sha256"):
        raise Broken(f"{path}: not what was saved: its SHA-256 differs from the manifest's")
    return content


def _flush_and_hash(path):
    """See that a file is on the disk, and return what the manifest says of it."""
    digest, size = hashlib.sha256(), 0
    with open(path, "rb") as file:
        os.fsync(file.fileno())
        for block in iter(lambda: file.read(1 << 20), b""):
            digest.update(block)
            size += len(block)
    return {"bytes": size, "sha256": digest.hexdigest()}


def _flush_folder(folder):
    """See that the names are on the disk, where the file system can be asked."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
    finally:
        os.close(descriptor)


def _unlink(path):
    with contextlib.suppress(FileNotFoundError):
        path.unlink()
