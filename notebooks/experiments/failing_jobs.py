"""Jobs that are stopped, killed and cut off on purpose, and what their logs and files say."""

import functools
import json
import os
import re
import signal

import background
import numpy as np

from helpers import ROOT, own_folder, run_quietly

LAUNCH = ("python", "tools/launch.py", "--timeout", "400")  # s: nothing here lasts longer


def __getattr__(name):
    """Return ``OUT``, the folder of checkpoints and logs; the first request makes it, empty."""
    if name != "OUT":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _out()


@functools.lru_cache(None)
def _out():
    return own_folder("failures")


def begin():
    """Empty the folder, and give each worker one thread: then two runs agree, bit for bit."""
    own_folder("failures")
    os.environ["OMP_NUM_THREADS"] = "1"  # of the processes that are started


class Job(background.Job):
    """A job of the launcher in the background; the words are its options and its command."""

    def __init__(self, name, *words):
        self.name = name
        for old in (ROOT / _out()).glob(f"{name}-[0-9]*"):
            old.unlink()  # checkpoints of an earlier job of this name
        super().__init__(*LAUNCH, "--job-dir", f"{_out()}/{name}-job", *words)

    def signal(self, name, number):
        """Send a signal to one process, as in ``job.signal("worker-1", signal.SIGKILL)``."""
        record = ROOT / _out() / f"{self.name}-job" / "job.json"
        last = json.loads(record.read_text(encoding="utf-8"))["attempts"][-1]
        (pid,) = [process["pid"] for process in last["processes"] if process["name"] == name]
        os.kill(pid, number)

    def lose(self, host, words):
        """Pull the cable of an ssh host and put it back once the launcher has missed it.

        Where ``ssh_hosts`` gave the words of this machine, kill worker 1 instead.
        """
        if "-H" not in words:
            return self.signal("worker-1", signal.SIGKILL)
        cluster = ("python", "tools/cluster.py", "--name", f"notebook-{os.getpid()}")
        run_quietly(*cluster, "cut", host)
        self.wait_for("not heard of")
        run_quietly(*cluster, "mend", host)

    def finish(self, pattern=None):
        """Wait for the end, print the lines that have the pattern, return the exit status."""
        status = super().finish()
        if pattern:
            kept = [line for line in self.lines() if re.search(pattern, line)]
            print(*kept, f"exit status {status}", sep="\n")
        return status


def status_of(worker, *options):
    """Return the exit status of a job whose worker is this line of shell, and the first words."""
    command = f"case $DMLC_ROLE in worker) {worker};; esac"
    status, lines = run_quietly(*LAUNCH[:2], "-n", "1", "-s", "1", *options, command)
    said = [re.sub(r", at .*|\[launch\] ", "", line) for line in lines if "[launch]" in line]
    return status, said[0] if said else "(nothing)"


def newest(name):
    """Return the path of a run's newest checkpoint, without an ending."""
    paths = sorted((ROOT / _out()).glob(f"{name}-[0-9]*.json"), key=lambda path: path.stem)
    return str(paths[-1])[: -len(".json")]


def difference(one, other):
    """Return the largest difference between the last parameters of two runs."""
    import mxnet as mx

    first, second = (mx.nd.load(f"{newest(name)}.params") for name in (one, other))
    return max(abs(first[key].asnumpy() - second[key].asnumpy()).max() for key in first)


def tries_of(lines, steps_per_epoch):
    """Read what worker 0 logged after each step.

    Returns
    -------
    list of list of (int, float)
        For each try of the job: steps done since the training began, accuracy of the batch.
    """
    tries = []
    for line in lines:
        match = re.search(r"worker 0.*Epoch\[(\d+)\] Batch \[(\d+)\].*accuracy=(\S+)", line)
        if match:
            done = int(match[1]) * steps_per_epoch + int(match[2])
            if not tries or done <= tries[-1][-1][0]:
                tries.append([])
            tries[-1].append((done, float(match[3])))
    return tries


def extra_time(period_s, save_s, between_s, restart_s=0, work_s=None, seed=0):
    """Simulate a long training that is killed at random; return what that costs.

    Parameters
    ----------
    period_s : float
        Seconds of training between two checkpoints.
    save_s : float
        Seconds that a checkpoint holds the training up.
    between_s : float
        Seconds from one failure to the next, on average.
    restart_s : float
        Seconds from a failure until the training goes on.
    work_s : float, optional
        Seconds of the training without failures and checkpoints; 5,000 failures' worth if None.
    seed : int

    Returns
    -------
    float
        Additional time, as a share of ``work_s``.
    """
    random = np.random.default_rng(seed)
    work_s = 5000 * between_s if work_s is None else work_s
    needed, saved, clock_s = int(np.ceil(work_s / period_s)), 0, 0.0
    while saved < needed:
        failure_s = random.exponential(between_s)
        fits = int(failure_s / (period_s + save_s))  # checkpoints before the failure
        if saved + fits >= needed:
            return (clock_s + (needed - saved) * (period_s + save_s)) / (needed * period_s) - 1
        saved, clock_s = saved + fits, clock_s + failure_s + restart_s
    return clock_s / (needed * period_s) - 1
