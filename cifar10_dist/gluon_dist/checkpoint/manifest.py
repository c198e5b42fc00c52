"""The manifest of a checkpoint: where in the training, and the SHA-256 of the other files."""

import hashlib
import json
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Dict, List, Optional

from gluon_dist.common.errors import UsageError
from gluon_dist.contract import MANIFEST_ENDING, MANIFEST_FORMAT

OWN_DIGEST = "manifest_sha256"


class Broken(UsageError):
    """A checkpoint that cannot be used; the message says which file, and why."""


@dataclass
class Manifest:
    """What ``PREFIX-0003.json`` says; the file has all of it in one JSON object.

    Attributes
    ----------
    epoch, step : int
        Finished epochs, and finished steps of the next.
    run : str
        A name for all tries of the same training; names sort as the trainings began.
    job : str or None
        What tells the launcher's job from others; empty without a launcher.
    saved : str or None
        When.
    worker_steps : list of int
        Finished steps of each worker, if that was noted; in ``dist_async`` they differ.
    devices : list of int
        How many each worker had, if that was noted.
    files : dict of str to dict
        ``bytes`` and ``sha256`` of each other file, by its name.
    program : dict
        What the program says besides: its options, the numbers of its optimizer.
    """

    epoch: int = 0
    step: int = 0
    run: str = ""
    job: Optional[str] = None
    saved: Optional[str] = None
    worker_steps: List[int] = field(default_factory=list)
    devices: List[int] = field(default_factory=list)
    files: Dict[str, Dict] = field(default_factory=dict)
    program: Dict = field(default_factory=dict)

    @classmethod
    def read(cls, name):
        """Read and check ``NAME.json``.

        Raises
        ------
        Broken
            If it is not there, damaged, or not of this package.
        """
        path = f"{name}{MANIFEST_ENDING}"
        try:
            return cls.parse(Path(path).read_text(encoding="utf-8"))
        except OSError as error:
            raise Broken(f"{path}: {error.strerror}") from None
        except UnicodeDecodeError:
            raise Broken(f"{path}: cut short or damaged: not JSON") from None
        except ValueError as error:
            raise Broken(f"{path}: {error}") from None

    @classmethod
    def parse(cls, text):
        """Return the manifest in a text; raise ValueError if it is not whole."""
        try:
            found = json.loads(text)
        except ValueError:
            raise ValueError("cut short or damaged: not JSON") from None
        if not isinstance(found, dict) or found.pop("format", None) != MANIFEST_FORMAT:
            raise ValueError(f"not a checkpoint of this program ({MANIFEST_FORMAT!r})")
        if found.pop(OWN_DIGEST, None) != _digest(dict(found, format=MANIFEST_FORMAT)):
            raise ValueError("damaged: its own SHA-256 differs")
        own = {each.name: found.pop(each.name) for each in fields(cls) if each.name in found}
        return cls(**own, program=found)

    def text(self):
        """Return what the file holds; raise ValueError if JSON cannot hold it."""
        found = {each.name: getattr(self, each.name) for each in fields(self)}
        found.update(found.pop("program"), format=MANIFEST_FORMAT)
        for name in ("saved", "worker_steps", "devices"):  # not noted
            if not found[name]:
                del found[name]
        found[OWN_DIGEST] = _digest(found)
        return json.dumps(found, indent=1, sort_keys=True, allow_nan=False) + "\n"

    def write(self, path):
        """Write the file."""
        Path(path).write_text(self.text(), encoding="utf-8")

    def steps_of(self, rank, num_workers):
        """Return the finished steps of the next epoch of a worker, of so many."""
        is_same = len(self.worker_steps) == num_workers
        return self.worker_steps[rank] if is_same else self.step


def _digest(found):
    return hashlib.sha256(json.dumps(found, sort_keys=True).encode()).hexdigest()
