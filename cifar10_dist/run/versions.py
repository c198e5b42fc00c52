"""Which program and libraries a worker has."""

import hashlib
import platform
from importlib.metadata import version
from pathlib import Path

import mxnet as mx
import numpy as np


def versions():
    """Return the versions that must be the same for all workers, by name.

    The program's is a SHA-1 over the names and the contents of its Python files, so that a host
    with an older copy of any of them is found out.
    """
    return {"program": _hash_program(), "MXNet": mx.__version__, "GluonCV": version("gluoncv")}


def all_versions():
    """Return also those that may differ between workers, by name."""
    return dict(versions(), Python=platform.python_version(), NumPy=np.__version__)


def _hash_program():
    """Return the beginning of a SHA-1 over the names and contents of the program's files."""
    digest = hashlib.sha1()
    program = Path(__file__).parent.parent
    for path in sorted(program.rglob("*.py")):
        name = path.relative_to(program).as_posix()
        digest.update(name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:12]
