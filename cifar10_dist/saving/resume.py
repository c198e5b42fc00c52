"""Where a training begins: afresh, or from a checkpoint that worker 0 reads and hands to all."""

import datetime
import json
import os
from dataclasses import dataclass, field

from command_line.options import STEERING
from ground import environment
from ground.messages import report, warn
from saving import checkpoint
from saving.candidates import asks_for_files, find_candidates, first_usable, place_of
from saving.module_files import warn_of_replacing
from saving.parameters import load
from saving.statistics import restore_statistics

SEEDED = "each step"  # how random numbers were seeded that a training draws


def new_run():
    """Name a run by the time of its beginning: names sort as the runs began."""
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="microseconds")


@dataclass
class Start:
    """Where a training begins.

    Attributes
    ----------
    facts : dict
        What a checkpoint of this training says of it: ``job, options, data, seed, num_workers,
        global_batch_size, steps_per_epoch, is_async, seeded``.
    epoch, step : int
        Finished epochs, and finished steps of the next; in ``dist_async`` each worker has a
        ``step`` of its own.
    name : str or None
        Of the checkpoint, ``PREFIX-0003``; None: the training begins afresh.
    run : str
        A name for all tries of the same training.
    manifest, arrays : dict
        Of the checkpoint, see ``checkpoint.py``.
    """

    facts: dict
    epoch: int = 0
    step: int = 0
    name: str = None
    run: str = field(default_factory=new_run)
    manifest: dict = field(default_factory=dict)
    arrays: dict = field(default_factory=dict)

    @property
    def steps_per_epoch(self):
        """Number of steps of an epoch."""
        return self.facts["steps_per_epoch"]

    @property
    def steps_done(self):
        """Number of steps of the training that are done."""
        return self.epoch * self.steps_per_epoch + self.step

    @property
    def steps(self):
        """Number of steps of an epoch, and of those of the training that are done."""
        return self.steps_per_epoch, self.steps_done

    @property
    def dtype(self):
        """The type that the checkpoint was trained in, None if it does not say."""
        return self.manifest.get("options", {}).get("--dtype")

    @property
    def is_seeded_otherwise(self):
        """Whether the steps of this epoch that are done were seeded in another way than now.

        Older versions seeded each step with SGLD only.
        """
        optimizer = self.manifest.get("options", {}).get("--optimizer", "")
        is_seeded_so = self.manifest.get("seeded") == SEEDED or optimizer.lower() == "sgld"
        return self.step > 0 and not is_seeded_so

    @property
    def came_alone(self):
        """Whether the parameters came without a manifest: plain MXNet saved them."""
        return bool(self.name) and "options" not in self.manifest

    def describe(self, dtype):
        """Return the facts, once ``--dtype auto`` is settled."""
        return {**self.facts, "options": {**self.facts["options"], "--dtype": dtype}}

    def restore(self, trainer, net, workers):
        """Put the optimizer's state back, and within an epoch each device's statistics."""
        trainer.restore_state(self.manifest.get("optimizer"), self.arrays)
        if "statistics" in self.arrays:
            devices = workers.gather([len(trainer.devices)]).ravel().astype(int).tolist()
            if devices == self.manifest["devices"]:  # else the mean stays, from the parameters
                restore_statistics(net, self.arrays["statistics"], workers.rank)
        self.arrays = {}

    def is_end(self, num_epochs, target_accuracy):
        """Tell whether nothing is left to train: the end, or the target, was reached before."""
        reached = self.manifest.get("accuracy")
        target_reached = target_accuracy and reached is not None and reached >= target_accuracy
        return self.epoch >= num_epochs or bool(target_reached)


def begin_or_resume(args, settings, net, workers, loader, session):
    """Begin afresh, or load the checkpoint that the command line asks for, on every worker.

    All workers make this call. Only worker 0 reads files. A checkpoint that is broken, or of
    something else, is named and the one before it is taken.

    Parameters
    ----------
    args : argparse.Namespace
    settings : dict of str to str
        ``data`` (a fingerprint), options and versions, the same on all workers.
    net : mxnet.gluon.HybridBlock
        Gets the parameters.
    workers : workers.Workers
    loader : loader.TrainLoader
    session : saving.session.Session
        Holds the prefix from here on.

    Returns
    -------
    Start
        Without the optimizer's state, which :meth:`Start.restore` puts back.

    Raises
    ------
    UsageError
        If what was asked for is not here, or cannot be used.
    """
    options = dict(settings)
    facts = {
        "job": environment.job_id(),
        "data": options.pop("data"),
        "options": options,
        "seed": args.seed,
        "num_workers": workers.count,
        "global_batch_size": loader.global_batch_size,
        "steps_per_epoch": len(loader),
        "is_async": workers.is_async,
        "seeded": SEEDED,
    }
    if workers.rank == 0:
        session.hold_prefix()
    start = _find_start(args, facts, net, workers)
    if start.name and workers.rank == 0:
        _tell(start)
    if start.is_end(args.num_epochs, args.target_accuracy):
        report(f"Epoch {start.epoch - 1}: nothing is left to train")
    return start


def _find_start(args, facts, net, workers):
    if not asks_for_files(args):
        if workers.rank == 0 and args.model_prefix and checkpoint.find(args.model_prefix):
            warn(
                f"{place_of(args.model_prefix, '-*')} are replaced by those of a new training; "
                "--resume auto would go on from them"
            )
        elif workers.rank == 0 and args.model_prefix:
            warn_of_replacing(args.model_prefix)
        return Start(facts)
    entries, goes_on = find_candidates(args, facts["job"], workers)
    chosen, params, state = None, b"", b""
    if workers.rank == 0 and entries:
        chosen, params, state = first_usable(entries, facts, net)
    chosen = json.loads(workers.hand_out(json.dumps(chosen).encode()))
    if chosen is None:
        if workers.rank == 0:
            report(f"no {place_of(args.model_prefix, '-*.json')}: starting afresh")
            warn_of_replacing(args.model_prefix)
        return Start(facts)
    name, manifest = chosen
    params, state = workers.hand_out(params), workers.hand_out(state)
    if workers.rank > 0:
        load(net, params)
    start = Start(facts, manifest["epoch"], manifest["step"], name, manifest=manifest)
    start.arrays = checkpoint.parse_state(state)
    if goes_on and "run" in manifest:
        start.run = manifest["run"]
    steps = manifest.get("worker_steps") or [start.step]
    start.step = steps[workers.rank] if len(steps) == workers.count else min(steps)
    return start


def _tell(start):
    """Say what is resumed, and what is not as it was."""
    within = f" and {start.step} steps" if start.step else ""
    report(f"Resumed from {start.name}: {start.epoch} epochs{within} done")
    saved, facts = start.manifest, start.facts
    if start.came_alone:
        pickled = os.path.exists(f"{start.name}.states")
        more = "; its .states, a pickle that could run any program, is not read" if pickled else ""
        report(f"{start.name}.params came alone: the optimizer begins anew, without momentum{more}")
        return
    before, now = saved["options"], dict(facts["options"])
    if now["--dtype"] == "auto":  # choose_dtype says what becomes of it
        now["--dtype"] = before["--dtype"]
    # With another --num-epochs, a rate that falls towards the end changes, and Lookahead, too.
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
