"""Which of the checkpoints that were found is taken: the newest that is whole."""

import json
import os
import socket

from gluon_dist.checkpoint.manifest import Broken
from gluon_dist.common.errors import UsageError
from gluon_dist.common.messages import warn


def look_elsewhere(entries, missing, may_be_missing, workers, afresh="--resume none"):
    """Raise on worker 0 if another host has a checkpoint that worker 0's host lacks.

    Parameters
    ----------
    entries : list of files.Entry
        What this worker's host has, the newest first.
    missing : str or None
        What was asked for and is not there.
    may_be_missing : bool
    workers : Workers
    afresh : str
        What the user writes to begin anew, for the message.

    Raises
    ------
    UsageError
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
    """Return what ``take`` makes of the newest checkpoint that is whole and fits.

    Parameters
    ----------
    entries : list of files.Entry
        The newest first.
    take : callable
        Reads an entry, or raises :class:`Broken`.

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
    newer = f"; nor can any of the {len(entries) - 1} newer" if len(entries) > 1 else ""
    raise UsageError(f"{last}{newer}")


def place_of(name, ending=""):
    """Return a path as somebody on another host finds it: absolute, with the host's name."""
    return f"{os.path.abspath(name)}{ending} on {socket.gethostname()}"
