"""Which program, libraries and options a worker has."""

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


# Options that each worker may have of its own.
OWN = {"gpus", "cpus", "data_dir", "data_train", "data_val", "model_prefix", "log_dir"}
OWN |= {"disp_batches", "profile", "keep", "resume"}


def describe(args):
    """Return the options and versions that must be the same for all workers, as texts by name."""
    facts = {f"--{k.replace('_', '-')}": str(v) for k, v in vars(args).items() if k not in OWN}
    facts["--resume"] = args.resume if args.resume in ("auto", "none") else "of a path"
    facts["--model-prefix"] = "given" if args.model_prefix else "not given"
    return dict(facts, **versions())


def all_versions():
    """Return also those that may differ between workers, by name."""
    return dict(versions(), Python=platform.python_version(), NumPy=np.__version__)


def _hash_program():
    digest = hashlib.sha1()
    program = Path(__file__).parent.parent
    for path in sorted(program.rglob("*.py")):
        name = path.relative_to(program).as_posix()
        digest.update(name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:12]
