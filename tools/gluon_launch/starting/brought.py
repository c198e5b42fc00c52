"""The package gluon_dist, packed for the supervisors, which unpack it on every host."""

import base64
import functools
import json
import zlib
from pathlib import Path

import gluon_dist

HERE = Path(gluon_dist.__file__).resolve().parent
STARTUP = HERE / "startup"  # what stands at the front of PYTHONPATH


@functools.lru_cache(maxsize=1)
def package():
    """Return all modules of the package: JSON, compressed, in base64."""
    files = sorted(HERE.rglob("*.py"))
    texts = {str(path.relative_to(HERE.parent)): path.read_text("utf-8") for path in files}
    return base64.b64encode(zlib.compress(json.dumps(texts).encode())).decode()
