"""Disturb trainings at random, and see that each ends like one that was not disturbed.

    PYTHONPATH=cifar10_dist:tools python tests/training_chaos.py [RUNS] [FIRST_SEED]   (make chaos)

Each run trains with two workers and a server under ``launch.py --max-restarts``. At a random moment
a random process (worker, server, scheduler, launcher) gets TERM, or KILL, or STOP and then KILL; or
the disk fills up during a save; or one of two hosts is cut off and mended. A launcher that is gone
is started again with the same command. Prints what was done, and a table; exit status 0 if every
run ended in time, with the parameters of the undisturbed training to the last bit, had lost at most
one save period, and left no process and no file behind.
"""

import collections
import contextlib
import os
import random
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import gluon_dist  # noqa: F401
from gluon_dist.checkpoint.files import Broken

from launching import cluster, on_hosts, why_no_cluster
from restarting import GLOBAL_BATCH, OPTIONS, PROGRAM, Job, assert_same

LIMIT_S = 300  # for a training with its restarts: 20 s on an idle machine
STARTS = 4  # of the launcher, by a harness that starts it again
WORKERS = 2
VICTIMS = ("worker-0", "worker-1", "server-0", "scheduler", "launcher")
SIGNALS = ("TERM", "KILL", "STOP KILL")
# How people start a program. A pipe has the status of its last command, but for `pipefail`.
STARTED_BY = ("{}", "timeout 999 {}", "bash -o pipefail -c {}|tee", "bash -o pipefail -c {};exit")
LAUNCH = ("-n", WORKERS, "-s", 1, "--max-restarts", 5, "--min-uptime", 0, "--grace", 20)
# The names are handed on to other hosts; the steps are slow enough to be hit.
ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "PYTHONPATH": str(Path(PROGRAM).parents[2] / "cifar10_dist"),
    "TINY_PAUSE": "0.1",
}


@dataclass
class Outcome:
    """What became of a run."""

    kind: str
    story: str
    in_time: bool = False
    exact: bool = False
    lost: int = 0  # epochs, the save period being one
    left: str = ""

    @property
    def is_good(self):
        return self.in_time and self.exact and self.lost <= 1 and not self.left


def start(folder, prefix, hosts=(), by="{}"):
    """Start the training under the launcher, its command in a line `by`; return the job."""
    options = (*OPTIONS, "--batch-size", GLOBAL_BATCH // WORKERS, "--model-prefix", prefix)
    names = [f"--env={name}" for name in ENVIRONMENT] if hosts else []
    words = map(str, (sys.executable, PROGRAM, *options))
    script = folder / "train.sh"
    script.write_text(f"#!/bin/bash\n{shlex.join(words)}\n")
    script.chmod(0o755)
    command = by.format(script).split(" ", by.count(" "))
    return Job(folder, *LAUNCH, *hosts, *names, *command, env=ENVIRONMENT, cwd=folder)


def wait_for(job, text, limit_s=LIMIT_S):
    """Wait for a line of the job, or its end."""
    end = time.monotonic() + limit_s
    while text not in job.text() and job.popen.poll() is None and time.monotonic() < end:
        time.sleep(0.02)


def random_moment(dice, job):
    """Wait until the start, some step, or a save."""
    if dice.random() < 0.2:
        time.sleep(dice.uniform(0, 8))  # it has hardly started
    else:
        epoch, batch = dice.randrange(4), dice.randint(1, 6)
        wait_for(job, f"Epoch[{epoch}] Batch [{batch}]")
        time.sleep(dice.uniform(0, 0.3))


def signal_somebody(dice, job, victim, signals):
    """Send the signals; return what was done."""
    pids = []
    while not pids:  # it may not have been started yet
        if job.popen.poll() is not None:
            return f"{victim} was gone"
        pids = [job.pid] if victim == "launcher" else sorted(job.role(victim))
    pid = dice.choice(pids)
    for name in signals.split():
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.Signals[f"SIG{name}"])
        if name == "STOP":
            time.sleep(dice.uniform(0.5, 14))  # after 10 s a launcher counts as lost
    return f"{signals} to {victim}"


def fill_disk(dice, job, disk):
    """Leave so little room that a save does not fit, for a while."""
    status = os.statvfs(disk)
    free = status.f_bavail * status.f_bsize
    filler = disk / "filler"
    filler.write_bytes(bytes(max(0, free - dice.randrange(4096, 60_000))))
    time.sleep(dice.uniform(0.2, 3))
    if dice.random() < 0.3:
        signal_somebody(dice, job, "worker-0", "KILL")
    filler.unlink()
    return "the disk was full for a while"


def cut_host(dice, job):
    """Take a host off the network, and bring it back."""
    host = dice.choice(["d1", "d2"])
    cluster("cut", host)
    away_s = dice.choice([3, 15, 25])
    time.sleep(away_s)
    cluster("mend", host)
    return f"{host} was cut off for {away_s} s"


@contextlib.contextmanager
def small_disk(folder):
    """A disk of 2 MB, which needs root on Linux."""
    disk = folder / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "none", str(disk)], check=True)
    try:
        yield disk
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def disturb(dice, kind, job, folder):
    """Do the damage of this run; return what was done."""
    random_moment(dice, job)
    if kind == "disk full":
        return fill_disk(dice, job, folder)
    if kind == "host cut off":
        return cut_host(dice, job)
    return signal_somebody(dice, job, dice.choice(VICTIMS), kind)


def run(seed, reference, kinds):
    """Train once, disturbed; return the :class:`Outcome`."""
    dice = random.Random(seed)
    kind = dice.choice(kinds)
    hosts = on_hosts() if kind == "host cut off" else ()
    by = dice.choice(STARTED_BY)
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="chaos-")))
        disk = stack.enter_context(small_disk(folder)) if kind == "disk full" else folder
        prefix, texts, outcome = disk / "model", [], Outcome(kind, f"{by}: ")
        end = time.monotonic() + LIMIT_S
        for attempt in range(STARTS):
            job = start(folder, prefix, hosts, by)
            if attempt == 0:
                outcome.story += disturb(dice, kind, job, disk)
            try:
                status = job.popen.wait(max(1, end - time.monotonic()))
            except subprocess.TimeoutExpired:
                job.popen.kill()
                status = None
            left = job.left(20)
            texts.append(job.text())
            outcome.left += " ".join(f"{command!r}" for command in left.values())
            outcome.story += f"; {status}"
            if status in (0, None):
                break
        outcome.in_time = status == 0
        outcome.lost = most_lost(texts)
        outcome.left += " ".join(path.name for path in disk.glob(".*"))
        try:
            assert_same(prefix, reference)
            outcome.exact = True
        except (AssertionError, OSError, Broken) as error:
            outcome.story += f"; {error!r}"
        if not outcome.is_good:
            outcome.story += "\n" + "\n".join(texts)
    return outcome


def most_lost(texts):
    """Most epochs that were done, said to be done, and done again.

    A save that failed with a message is not counted: the epochs since the one before are lost then.
    """
    done = lost = 0
    failed = "could not be saved" in "".join(texts)
    for line in "\n".join(texts).splitlines():
        finished = re.search(r"worker 0[^]]*\] Epoch (\d+): Test_acc", line)
        resumed = re.search(r"Resumed from .*: (\d+) epochs", line)
        if finished:
            done = max(done, int(finished[1]) + 1)
        if resumed or "starting afresh" in line:
            lost = max(lost, done - (int(resumed[1]) if resumed else 0))
    return 0 if failed else lost


def undisturbed(folder):
    """Train without any disturbance; return the prefix of the files."""
    job = start(folder, folder / "model")
    assert job.wait(LIMIT_S) == 0, job.text()
    return folder / "model"


def possible_kinds():
    """What can be done on this machine."""
    if why_no_cluster():
        print(f"no full disk, no host cut off: {why_no_cluster()}")
        return list(SIGNALS)
    return [*SIGNALS, *SIGNALS, "disk full", "host cut off"]


def table(outcomes):
    """The table, as lines."""
    rows = collections.defaultdict(list)
    for outcome in outcomes:
        rows[outcome.kind].append(outcome)
    rows["all"] = outcomes
    yield f"{'':14}{'runs':>6}{'in time':>9}{'exact':>7}{'left over':>11}{'most epochs lost':>18}"
    for kind, group in rows.items():
        in_time, exact = sum(o.in_time for o in group), sum(o.exact for o in group)
        left, lost = sum(bool(o.left) for o in group), max(o.lost for o in group)
        yield f"{kind:14}{len(group):6}{in_time:9}{exact:7}{left:11}{lost:18}"


def main(runs=20, first_seed=None):
    """Run, tell, and return the exit status."""
    first = random.randrange(10**6) if first_seed is None else first_seed
    kinds, outcomes = possible_kinds(), []
    with contextlib.ExitStack() as stack:
        if "host cut off" in kinds:
            cluster("up", "--hosts", "2")
            stack.callback(cluster, "down")
        reference = undisturbed(Path(stack.enter_context(tempfile.TemporaryDirectory())))
        for seed in range(first, first + runs):
            began = time.monotonic()
            outcomes.append(run(seed, reference, kinds))
            good = "good" if outcomes[-1].is_good else "BAD"
            seconds = time.monotonic() - began
            print(f"seed {seed}: {good}, {seconds:.0f} s: {outcomes[-1].story}", flush=True)
    print("\n".join(table(outcomes)))
    return 0 if all(outcome.is_good for outcome in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
