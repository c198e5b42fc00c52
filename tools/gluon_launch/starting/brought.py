"""The package gluon_dist, packed for the supervisors, which unpack it on every host."""

import base64
import functools
import json
import zlib
from pathlib import Path

import gluon_dist

HERE = Path(gluon_dist.__file__).resolve().parent
STARTUP = HERE / "startup"  # what stands at the front of PYTHONPATH


LONGEST = 16_000  # characters of a part: on their way to a host are pipes that hold 65,536 bytes


@functools.lru_cache(maxsize=1)
def parts():
    """Return all files of the package: JSON, compressed, in base64, cut into parts."""
    files = sorted([*HERE.rglob("*.py"), *STARTUP.glob("*.dist-info/*")])
    texts = {str(path.relative_to(HERE.parent)): path.read_text("utf-8") for path in files}
    packed = base64.b64encode(zlib.compress(json.dumps(texts).encode(), 9)).decode()
    return [packed[start : start + LONGEST] for start in range(0, len(packed), LONGEST)]
