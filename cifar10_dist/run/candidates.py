"""Which checkpoints a training may go on from, and the reading of one of them."""

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Optional

from gluon_dist.checkpoint import files
from gluon_dist.checkpoint.candidates import first_usable, look_elsewhere
from gluon_dist.checkpoint.files import Broken, Entry
from gluon_dist.checkpoint.parameters import load
from gluon_dist.setup import environment

# What a position inside an epoch depends on.
WITHIN = ("data", "seed", "global_batch_size", "steps_per_epoch", "is_async")


@dataclass(frozen=True)
class Wanted:
    """What the command line asks to resume from.

    Attributes
    ----------
    prefix : str or None
        Of the checkpoints that this training saves.
    resume : str
        ``auto``: the newest of the prefix, if there is one. ``none``. Or the name of a checkpoint.
    load_epoch : int or None
        An epoch of the prefix.
    """

    prefix: Optional[str]
    resume: str = "none"
    load_epoch: Optional[int] = None

    def asks_for_files(self):
        """Return whether the command line, or a restart by the launcher, asks for a checkpoint."""
        names_files = self.prefix or self.resume not in ("none", "auto")
        wants = self.load_epoch is not None or self.resume != "none" or environment.is_restarted()
        return bool(names_files and wants)


def find_candidates(wanted, job, workers):
    """List the checkpoints to try, the newest first; all workers make this call.

    Parameters
    ----------
    wanted : Wanted
    job : str
        The identity of this job of the launcher.
    workers : Workers

    Returns
    -------
    entries : list of files.Entry
    is_same_run : bool
        Whether the training continues the run that saved them; else it is a new run.

    Raises
    ------
    UsageError
        If what was asked for is not on worker 0's host.
    """
    entries, is_same_run, missing = _list(wanted, job)
    look_elsewhere(entries, missing, is_same_run, workers)
    return entries, is_same_run


def read_first(entries, net, facts):
    """Read the newest checkpoint that is whole and fits.

    Parameters
    ----------
    entries : list of files.Entry
        The newest first.
    net : mxnet.gluon.HybridBlock
        Gets the parameters.
    facts : dict
        Of this training, see :class:`run.resume.Start`.

    Returns
    -------
    entry : files.Entry
    params, state : bytes
        The contents of its files.

    Raises
    ------
    UsageError
        If none is whole and fits.
    """

    def read(entry):
        _check_position(entry, facts)
        params, state = files.read(entry.name, entry.manifest)
        load(net, f"{entry.name}.params", params)
        return entry, params, state

    return first_usable(entries, read)


def _list(wanted, job):
    """Return the entries, whether it is the same run, and what was asked for and is missing."""
    own = files.find(wanted.prefix) if wanted.prefix else []
    if wanted.resume == "auto" and wanted.load_epoch is None:
        return own, True, None if own else f"{wanted.prefix}-*.json"
    saved = [entry for entry in own if entry.manifest and entry.manifest.job == job]
    if environment.is_restarted() and saved:  # whatever the first try of the job began with
        return saved, True, None
    if wanted.load_epoch is not None:
        name = f"{wanted.prefix}-{files.tag(wanted.load_epoch)}"
    elif wanted.resume == "none":  # a restart, and the job has saved nothing here
        return [], True, f"{wanted.prefix}-*.json"
    else:
        name = re.sub(r"\.(json|params|state)$", "", wanted.resume)
    match = re.fullmatch(r"(.+)-(\d{4,})(?:-(\d{5,}))?", name, re.DOTALL)
    if not match:
        entries = files.find(name)
        return entries, False, None if entries else f"{name}-*.json"
    position = int(match[2]), int(match[3] or 0)
    if not any(os.path.exists(f"{name}.{ending}") for ending in ("json", "params")):
        return [], False, f"{name}.params"
    entries = files.find(match[1])
    named = [e for e in entries if Path(e.name) == Path(name)]
    named = named or [Entry(name, *position, error=files.without_manifest(name))]
    return named + [e for e in entries if (e.epoch, e.step) < position], False, None


def _check_position(entry, facts):
    """Raise Broken if a position inside an epoch means something else in this training."""
    for name in WITHIN if entry.step else ():
        saved = entry.manifest.program.get(name)
        if saved != facts[name]:
            raise Broken(
                f"{entry.name}: stopped inside an epoch, with {name.replace('_', ' ')} "
                f"{saved}, which is {facts[name]} here"
            )
