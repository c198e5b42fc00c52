"""Where a training begins: afresh, or from a checkpoint that worker 0 reads and hands to all."""

import json
import os
import re
import socket
from dataclasses import dataclass, field
from pathlib import Path

import mxnet as mx

from command_line.options import STEERING
from ground import environment
from ground.failure import UsageError
from ground.messages import warn
from saving import checkpoint
from saving.checkpoint import Broken, Entry
from saving.saver import new_run
from saving.state import restore_optimizer, restore_statistics

# What a place inside an epoch depends on.
WITHIN = ("data", "seed", "global_batch_size", "steps_per_epoch", "is_async")


@dataclass
class Start:
    """Where the training begins; in ``dist_async`` each worker has a ``step`` of its own."""

    epoch: int = 0
    step: int = 0
    name: str = None  # of the checkpoint
    run: str = field(default_factory=new_run)
    manifest: dict = field(default_factory=dict)
    arrays: dict = field(default_factory=dict)

    def restore(self, net, trainer, workers):
        """Put the optimizer's state back, and within an epoch each device's statistics."""
        saved = self.manifest.get("optimizer")
        if saved and not trainer.is_async and saved["name"] == type(trainer.optimizer).__name__:
            restore_optimizer(trainer, saved, self.arrays)
        if "statistics" in self.arrays:
            devices = workers.gather([len(trainer._contexts)]).ravel().astype(int).tolist()
            if devices == self.manifest["devices"]:  # else the mean stays, from the parameters
                restore_statistics(net, self.arrays["statistics"], workers.rank)
        self.arrays = {}

    def is_end(self, num_epochs, target_accuracy):
        """Tell whether there is nothing left to train."""
        reached = self.manifest.get("accuracy")
        target_reached = target_accuracy and reached is not None and reached >= target_accuracy
        return self.epoch >= num_epochs or bool(target_reached)


def find_start(args, facts, net, workers):
    """Load what the command line asks to go on from, on every worker.

    Only worker 0 reads files. A checkpoint that is broken, or of something else, is named and the
    one before it is taken.

    Parameters
    ----------
    args : argparse.Namespace
    facts : dict
        What a checkpoint of this training would say of it: ``job, options, data, seed,
        global_batch_size, steps_per_epoch, is_async``.
    net : mxnet.gluon.HybridBlock
        Gets the parameters.
    workers : workers.Workers

    Returns
    -------
    Start

    Raises
    ------
    UsageError
        If what was asked for is not here, or cannot be used.
    """
    restarted = environment.is_restarted()
    if args.load_epoch is None and ((args.resume == "none" and not restarted) or not _asks(args)):
        if workers.rank == 0 and args.model_prefix and checkpoint.find(args.model_prefix):
            warn(
                f"{_place(args.model_prefix, '-*')} are replaced by those of a new training; "
                "--resume auto would go on from them"
            )
        return Start()
    entries, goes_on, missing = _candidates(args, facts["job"], restarted)
    _look_elsewhere(entries, missing, goes_on, workers)
    chosen, params, state = None, b"", b""
    if workers.rank == 0 and entries:
        chosen, params, state = _first_usable(entries, facts, net)
    chosen = json.loads(workers.hand_out(json.dumps(chosen).encode()))
    if chosen is None:
        if workers.rank == 0:
            print(f"no {_place(args.model_prefix, '-*.json')}: starting afresh", flush=True)
        return Start()
    name, manifest = chosen
    params, state = workers.hand_out(params), workers.hand_out(state)
    if workers.rank > 0:
        _load(net, params)
    start = Start(manifest["epoch"], manifest["step"], name, manifest=manifest)
    start.arrays = checkpoint.parse_state(state)
    if goes_on and "run" in manifest:
        start.run = manifest["run"]
    steps = manifest.get("worker_steps") or [start.step]
    start.step = steps[workers.rank] if len(steps) == workers.count else min(steps)
    return start


def _asks(args):
    """Tell whether the options name files at all."""
    return bool(args.model_prefix) or args.resume not in ("none", "auto")


def _candidates(args, job, restarted):
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
    """Stop worker 0 if it lacks what another worker has on its own host."""
    newest = entries[0] if entries else None
    age = newest.age() if newest and newest.manifest else None
    text = json.dumps([newest and _place(newest.name), age])
    found = list(map(json.loads, workers.gather_texts(text)))
    if workers.rank > 0:
        return
    for rank, (place, their_age) in enumerate(found):
        newer = age and their_age and their_age[0] == age[0] and tuple(their_age) > age
        if place and (newer or not newest):
            here = f"only {_place(newest.name)}" if newer else f"no {_place(missing)}"
            raise UsageError(
                f"worker 0 has {here}; worker {rank} has {place}: copy the files to worker 0's "
                "host, or let worker 0 run where they are (--resume none starts afresh)"
            )
    if missing and not may_be_missing:
        raise UsageError(f"there is no {_place(missing)}")


def _first_usable(entries, facts, net):
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
                _check_place(entry, facts)
                params, state = checkpoint.read(entry.name, manifest)
            try:
                _load(net, params)
            except (mx.MXNetError, AssertionError, ValueError) as error:
                reason = str(error).strip().splitlines()[0][:200]
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


def _check_place(entry, facts):
    """See that a place inside an epoch means the same here."""
    for name in WITHIN if entry.step else ():
        if entry.manifest[name] != facts[name]:
            raise Broken(
                f"{entry.name}: stopped inside an epoch, with {name.replace('_', ' ')} "
                f"{entry.manifest[name]}, which is {facts[name]} here"
            )


def _load(net, params):
    own = net.collect_params()
    ctx = next(iter(own.values())).list_ctx()
    own.load_dict(checkpoint.parse_params(params), ctx=ctx)


def tell(start, facts):
    """Say what is resumed, if anything is, and what is not as it was."""
    if not start.name:
        return
    within = f" and {start.step} steps" if start.step else ""
    print(f"Resumed from {start.name}: {start.epoch} epochs{within} done", flush=True)
    saved = start.manifest
    if "options" not in saved:
        print(f"{start.name}.params came alone: the optimizer begins anew", flush=True)
        return
    before, now = saved["options"], facts["options"]
    # Where the end moves, a rate that falls towards it, or an average that grows, does, too.
    has_end = now["--lr-schedule"] in ("cosine", "onecycle") or now["--lookahead"] != "0"
    steering = [*STEERING, "--num-epochs"] if has_end else STEERING
    changed = [
        f"{name} {now[name]} (was {before.get(name)})"
        for name in steering
        if before.get(name) != now[name]
    ]
    changed += [
        f"{name.replace('_', ' ')} {facts[name]} (was {saved.get(name)})"
        for name in ("data", "seed", "global_batch_size", "is_async")
        if saved.get(name) != facts[name]
    ]
    if changed:
        warn(f"not as saved: {', '.join(changed)}")


def _place(name, ending=""):
    """A path as somebody on another host can find it."""
    return f"{os.path.abspath(name)}{ending} on {socket.gethostname()}"
