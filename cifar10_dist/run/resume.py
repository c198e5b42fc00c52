"""Where a training begins: afresh, or from a checkpoint that worker 0 reads for all workers."""

from dataclasses import dataclass, field
from typing import Optional

from gluon_dist.checkpoint import files
from gluon_dist.checkpoint.candidates import place_of
from gluon_dist.checkpoint.manifest import Manifest
from gluon_dist.checkpoint.parameters import load
from gluon_dist.checkpoint.statistics import restore_statistics
from gluon_dist.checkpoint.writer import new_run
from gluon_dist.common.messages import counted, report, warn
from gluon_dist.setup import environment

from command_line.options import STEERING
from run.candidates import Wanted, find_candidates, read_first

SEEDED = "each step"  # when the generator of random numbers is seeded


@dataclass
class Start:
    """Where a training begins.

    Attributes
    ----------
    facts : dict
        What a checkpoint states of this training: ``job, options, data, seed, num_workers,
        global_batch_size, steps_per_epoch, is_async, seeded``.
    epoch, step : int
        Finished epochs, and finished steps of the next; in ``dist_async`` each worker has a
        ``step`` of its own.
    name : str or None
        Of the checkpoint, ``PREFIX-0003``; None: the training begins afresh.
    run : str
        The name of the run, the same after each restart.
    manifest : Manifest
    arrays : dict
        Of the checkpoint, see ``gluon_dist/checkpoint/files.py``.
    """

    facts: dict
    epoch: int = 0
    step: int = 0
    name: Optional[str] = None
    run: str = field(default_factory=new_run)
    manifest: Manifest = field(default_factory=Manifest)
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
    def is_seeded_otherwise(self):
        """Whether an older version seeded the finished steps of this epoch in another way.

        Older versions seeded each step with SGLD only.
        """
        optimizer = self.manifest.program.get("options", {}).get("--optimizer", "")
        is_seeded_so = self.manifest.program.get("seeded") == SEEDED or optimizer.lower() == "sgld"
        return self.step > 0 and not is_seeded_so

    def restore(self, trainer, net, workers):
        """Restore the optimizer's state, and within an epoch each device's BatchNorm statistics."""
        trainer.restore_state(self.manifest.program.get("optimizer"), self.arrays)
        if self.manifest.step:  # the least of all workers
            devices = workers.all_gather_int(len(trainer.devices))
            if devices == self.manifest.devices:  # else the mean stays, from the parameters
                restore_statistics(net, self.arrays, workers.rank)
        self.arrays = {}

    def is_end(self, num_epochs, target_accuracy):
        """Return whether the last epoch, or the target, was reached before: nothing is left."""
        reached = self.manifest.program.get("accuracy")
        target_reached = target_accuracy and reached is not None and reached >= target_accuracy
        return self.epoch >= num_epochs or bool(target_reached)


def begin_or_resume(args, settings, net, workers, loader, session):
    """Return where the training begins, and load the checkpoint if there is one.

    All workers make this call. Only worker 0 reads files. If a checkpoint is broken or does not
    fit, a line names it and the one before it is taken.

    Parameters
    ----------
    args : argparse.Namespace
    settings : dict of str to str
        ``data`` (a fingerprint), options and versions, the same on all workers.
    net : mxnet.gluon.HybridBlock
        Gets the parameters.
    workers : Workers
    loader : loader.TrainLoader
    session : gluon_dist.checkpoint.session.Session
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
    wanted = Wanted(args.model_prefix, args.resume, args.load_epoch)
    start = _find_start(wanted, facts, net, workers)
    if start.name and workers.rank == 0:
        _report(start)
    if start.is_end(args.num_epochs, args.target_accuracy):
        report(f"Epoch {start.epoch - 1}: nothing is left to train")
    return start


def _find_start(wanted, facts, net, workers):
    """Return where the training begins, with the parameters loaded; all workers make this call."""
    if not wanted.asks_for_files():
        if workers.rank == 0 and wanted.prefix and files.find(wanted.prefix):
            warn(
                f"{place_of(wanted.prefix, '-*')} are replaced by those of a new training; "
                "--resume auto would go on from them"
            )
        return Start(facts)
    entries, is_same_run = find_candidates(wanted, facts["job"], workers)
    name, text, params, state = "", "", b"", b""
    if workers.rank == 0 and entries:
        entry, params, state = read_first(entries, net, facts)
        name, text = entry.name, entry.manifest.text()
    name = workers.broadcast(name.encode()).decode()
    if not name:
        if workers.rank == 0:
            report(f"no {place_of(wanted.prefix, '-*.json')}: starting afresh")
        return Start(facts)
    manifest = Manifest.parse(workers.broadcast(text.encode()).decode())
    params, state = workers.broadcast(params), workers.broadcast(state)
    if workers.rank > 0:
        load(net, f"{name}.params", params)
    step = manifest.steps_of(workers.rank, workers.count)
    start = Start(facts, manifest.epoch, step, name, manifest=manifest)
    start.arrays = files.parse_state(state)
    if is_same_run:
        start.run = manifest.run
    return start


def _report(start):
    """Print what is resumed, and which options differ from the saved ones."""
    within = f" and {counted(start.step, 'step')}" if start.step else ""
    report(f"Resumed from {start.name}: {counted(start.epoch, 'epoch')}{within} done")
    saved, facts = start.manifest.program, start.facts
    if "options" not in saved:  # tools/convert_module.py wrote it
        report(f"{start.name} has parameters alone: the optimizer begins anew, without momentum")
        return
    before, now = saved["options"], facts["options"]
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
