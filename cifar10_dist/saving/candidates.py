"""Which checkpoints may be resumed from: found by name, tried from the newest on."""

import json
import os
import re
import socket
from pathlib import Path

import mxnet as mx

from ground import environment
from ground.failure import UsageError
from ground.messages import warn
from saving import checkpoint
from saving.checkpoint import Broken, Entry
from saving.parameters import load

# What a position inside an epoch depends on.
WITHIN = ("data", "seed", "global_batch_size", "steps_per_epoch", "is_async")


def asks_for_files(args):
    """Tell whether the command line, or a restart by the launcher, asks to go on from files."""
    names_files = args.model_prefix or args.resume not in ("none", "auto")
    wants = args.load_epoch is not None or args.resume != "none" or environment.is_restarted()
    return bool(names_files and wants)


def find_candidates(args, job, workers):
    """List the checkpoints to try, the newest first; all workers make this call.

    Parameters
    ----------
    args : argparse.Namespace
    job : str
        What tells this job from others.
    workers : workers.Workers

    Returns
    -------
    entries : list of checkpoint.Entry
    goes_on : bool
        Whether this is the same run, and not a new one that begins where the user points to.

    Raises
    ------
    UsageError
        If what was asked for is not on worker 0's host.
    """
    entries, goes_on, missing = candidates(args, job, environment.is_restarted())
    _look_elsewhere(entries, missing, goes_on, workers)
    return entries, goes_on


def candidates(args, job, restarted):
    """List the checkpoints to try, the newest first.

    Returns
    -------
    entries : list of checkpoint.Entry
    goes_on : bool
        Whether this is the same run, and not a new one that begins where the user points to.
    missing : str or None
        What was asked for, if it is not here.
    """
    own = checkpoint.find(args.model_prefix) if args.model_prefix else []
    if args.resume == "auto" and args.load_epoch is None:
        return own, True, None if own else f"{args.model_prefix}-*.json"
    saved = [entry for entry in own if entry.manifest and entry.manifest["job"] == job]
    if restarted and saved:  # the job goes on from what it has saved, whatever it began with
        return saved, True, None
    if args.load_epoch is not None:
        wanted = f"{args.model_prefix}-{checkpoint.tag(args.load_epoch)}"
    elif args.resume == "none":
        return [], False, None
    else:
        wanted = re.sub(r"\.(json|params|state)$", "", args.resume)
    match = re.fullmatch(r"(.+)-(\d{4,})(?:-(\d{5,}))?", wanted, re.DOTALL)
    if not match:
        entries = checkpoint.find(wanted)
        return entries, False, None if entries else f"{wanted}-*.json"
    position = int(match[2]), int(match[3] or 0)
    if not any(os.path.exists(f"{wanted}.{ending}") for ending in ("json", "params")):
        return [], False, f"{wanted}.params"
    entries = checkpoint.find(match[1])
    named = [e for e in entries if Path(e.name) == Path(wanted)] or [Entry(wanted, *position)]
    return named + [e for e in entries if (e.epoch, e.step) < position], False, None


def _look_elsewhere(entries, missing, may_be_missing, workers):
    """Raise on worker 0 if another host has a checkpoint that worker 0's host lacks."""
    newest = entries[0] if entries else None
    age = newest.recency() if newest and newest.manifest else None
    text = json.dumps([newest and place_of(newest.name), age])
    found = list(map(json.loads, workers.gather_texts(text)))
    if workers.rank > 0:
        return
    for rank, (place, their_age) in enumerate(found):
        newer = age and their_age and their_age[0] == age[0] and tuple(their_age) > age
        if place and (newer or not newest):
            here = f"only {place_of(newest.name)}" if newer else f"no {place_of(missing)}"
            raise UsageError(
                f"worker 0 has {here}; worker {rank} has {place}: copy the files to worker 0's "
                "host, or let worker 0 run where they are (--resume none starts afresh)"
            )
    if missing and not may_be_missing:
        raise UsageError(f"there is no {place_of(missing)}")


def first_usable(entries, facts, net):
    """Read the newest checkpoint that is whole and fits, into the network.

    Returns
    -------
    (name, manifest), params, state : tuple, bytes, bytes
    """
    for entry in entries:
        try:
            if entry.error:
                raise Broken(entry.error)
            if entry.manifest is None:  # of plain MXNet, or an older version of this program
                manifest = {"epoch": entry.epoch, "step": entry.step}
                params, state = checkpoint.read_file(f"{entry.name}.params"), b""
            else:
                manifest = entry.manifest
                _check_position(entry, facts)
                params, state = checkpoint.read(entry.name, manifest)
            try:
                load(net, params)
            except (mx.MXNetError, AssertionError, ValueError) as error:
                lines = str(error).strip().splitlines()
                reason = lines[-1 if isinstance(error, mx.MXNetError) else 0][:200]
                raise Broken(
                    f"{entry.name}.params: not the parameters of this network: {reason}"
                ) from None
            return (entry.name, manifest), params, state
        except Broken as error:
            last = str(error)
            if entry is not entries[-1]:
                warn(f"{last}: trying the one before it")
    others = f"; nor can any of the {len(entries) - 1} newer" if len(entries) > 1 else ""
    raise UsageError(f"{last}{others}")


def _check_position(entry, facts):
    """See that a position inside an epoch means the same here."""
    for name in WITHIN if entry.step else ():
        if entry.manifest[name] != facts[name]:
            raise Broken(
                f"{entry.name}: stopped inside an epoch, with {name.replace('_', ' ')} "
                f"{entry.manifest[name]}, which is {facts[name]} here"
            )


def place_of(name, ending=""):
    """A path as somebody on another host can find it."""
    return f"{os.path.abspath(name)}{ending} on {socket.gethostname()}"
