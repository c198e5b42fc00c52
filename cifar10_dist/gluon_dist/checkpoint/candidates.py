"""Which checkpoints may be resumed from: found by name, tried from the newest on."""

import json
import os
import re
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Optional

from gluon_dist.checkpoint import files
from gluon_dist.checkpoint.files import Broken, Entry
from gluon_dist.checkpoint.parameters import load
from gluon_dist.common.errors import UsageError
from gluon_dist.common.messages import warn
from gluon_dist.setup import environment

# What a position inside an epoch depends on.
WITHIN = ("data", "seed", "global_batch_size", "steps_per_epoch", "is_async")


@dataclass(frozen=True)
class Wanted:
    """What to go on from: a name of a checkpoint in `resume`, or "auto": the newest, or "none"."""

    prefix: Optional[str]  # of the checkpoints that this training saves
    resume: str = "none"
    load_epoch: Optional[int] = None  # of the prefix

    def asks_for_files(self):
        """Tell whether it, or a restart by the launcher, asks to go on from files."""
        names_files = self.prefix or self.resume not in ("none", "auto")
        wants = self.load_epoch is not None or self.resume != "none" or environment.is_restarted()
        return bool(names_files and wants)


def find_candidates(wanted, job, workers):
    """List the checkpoints to try, the newest first; all workers make this call.

    Parameters
    ----------
    wanted : Wanted
    job : str
        What tells this job from others.
    workers : Workers

    Returns
    -------
    entries : list of files.Entry
    goes_on : bool
        Whether this is the same run, and not a new one that begins where the user points to.

    Raises
    ------
    UsageError
        If what was asked for is not on worker 0's host.
    """
    entries, goes_on, missing = candidates(wanted, job, environment.is_restarted())
    look_elsewhere(entries, missing, goes_on, workers)
    return entries, goes_on


def candidates(wanted, job, restarted):
    """List the checkpoints to try, the newest first.

    Returns
    -------
    entries : list of files.Entry
    goes_on : bool
        Whether this is the same run, and not a new one that begins where the user points to.
    missing : str or None
        What was asked for, if it is not here.
    """
    own = files.find(wanted.prefix) if wanted.prefix else []
    if wanted.resume == "auto" and wanted.load_epoch is None:
        return own, True, None if own else f"{wanted.prefix}-*.json"
    saved = [entry for entry in own if entry.manifest and entry.manifest.job == job]
    if restarted and saved:  # the job goes on from what it has saved, whatever it began with
        return saved, True, None
    if wanted.load_epoch is not None:
        name = f"{wanted.prefix}-{files.tag(wanted.load_epoch)}"
    elif wanted.resume == "none":
        return [], False, None
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


def look_elsewhere(entries, missing, may_be_missing, workers, afresh="--resume none"):
    """Raise on worker 0 if another host has a checkpoint that worker 0's host lacks.

    ``afresh`` is what lets a training begin anew, for messages.
    """
    newest = entries[0] if entries else None
    age = newest.recency() if newest and newest.manifest else None
    text = json.dumps([newest and place_of(newest.name), age])
    found = list(map(json.loads, workers.all_gather_texts(text)))
    if workers.rank > 0:
        return
    for rank, (place, their_age) in enumerate(found):
        newer = age and their_age and their_age[0] == age[0] and tuple(their_age) > age
        if place and (newer or not newest):
            here = f"only {place_of(newest.name)}" if newer else f"no {place_of(missing)}"
            raise UsageError(
                f"worker 0 has {here}; worker {rank} has {place}: copy the files to worker 0's "
                f"host, or let worker 0 run where they are ({afresh} starts afresh)"
            )
    if missing and not may_be_missing:
        raise UsageError(f"there is no {place_of(missing)}")


def first_usable(entries, take):
    """Take the newest checkpoint that is whole and fits.

    Parameters
    ----------
    entries : list of files.Entry
        The newest first.
    take : callable
        Reads an entry, and returns what this function then returns, or raises :class:`Broken`.

    Raises
    ------
    UsageError
        If there is none, with what is wrong with the oldest.
    """
    for entry in entries:
        try:
            if entry.error:
                raise Broken(entry.error)
            return take(entry)
        except Broken as error:
            last = str(error)
            if entry is not entries[-1]:
                warn(f"{last}: trying the one before it")
    others = f"; nor can any of the {len(entries) - 1} newer" if len(entries) > 1 else ""
    raise UsageError(f"{last}{others}")


def load_into(net, facts):
    """Return a function for :func:`first_usable` that reads a checkpoint into a network.

    It returns ``(name, manifest), params, state``, the last two as bytes.
    """

    def take(entry):
        _check_position(entry, facts)
        params, state = files.read(entry.name, entry.manifest)
        load(net, f"{entry.name}.params", params)
        return (entry.name, entry.manifest), params, state

    return take


def _check_position(entry, facts):
    """See that a position inside an epoch means the same here."""
    for name in WITHIN if entry.step else ():
        saved = entry.manifest.program.get(name)
        if saved != facts[name]:
            raise Broken(
                f"{entry.name}: stopped inside an epoch, with {name.replace('_', ' ')} "
                f"{saved}, which is {facts[name]} here"
            )


def place_of(name, ending=""):
    """A path as somebody on another host can find it."""
    return f"{os.path.abspath(name)}{ending} on {socket.gethostname()}"
