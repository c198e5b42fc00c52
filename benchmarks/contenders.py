"""The programs that are compared, as commands of their own, and how to read what they print."""

import importlib.util
import os
import re
import shutil
import statistics
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from measured import PEERS_PYTHON, ROOT

PEERS = Path(__file__).resolve().parent / "peers"
OURS = [sys.executable, "cifar10_dist/cifar10_dist.py"]
LAUNCH = [sys.executable, "tools/launch.py", "--launcher", "local"]
ONE_THREAD = {"OMP_NUM_THREADS": "1"}
RING = ["--kv-store", "horovod"]
HAS_HOROVOD = importlib.util.find_spec("horovod") is not None
TIME_LIMIT_S = 3600
# Threads and the like are for the programs to choose.
CHOSEN_ELSEWHERE = re.compile(r"OMP_|MKL_|MXNET_|KMP_|TORCH|PYTHONPATH")


class Failed(RuntimeError):
    """A program that is to be measured did not end well."""


def run(*commands, env=None):
    """Run programs at the same time.

    Parameters
    ----------
    commands : list of str
        Each with its words.
    env : dict, optional
        Added to the environment.

    Returns
    -------
    dict
        Means over the programs of what :func:`read` finds; ``seconds`` of all together.
    """
    base = {k: v for k, v in os.environ.items() if not CHOSEN_ELSEWHERE.match(k)}
    base.update(env or {}, PYTHONUNBUFFERED="1")
    start = time.time()
    missing = [c[0] for c in commands if not shutil.which(c[0])]
    if missing:
        raise Failed(f"{missing[0]} is missing; `make bench` builds .venv-peers")
    running = [
        subprocess.Popen(
            c, cwd=ROOT, env=base, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        for c in commands
    ]
    with ThreadPoolExecutor(len(running)) as pool:
        try:
            printed = list(pool.map(_lines, running))
        except KeyboardInterrupt:
            for process in running:
                process.terminate()
            raise
    seconds = time.time() - start
    found = []
    for process, lines in zip(running, printed):
        if process.returncode:
            text = "".join(line for _, line in lines)
            raise Failed(f"{' '.join(process.args)}: status {process.returncode}\n{text}")
        found.append(read(lines, start))
    means = {name: statistics.mean(f[name] for f in found) for name in found[0]}
    return dict(means, seconds=seconds)


def _lines(process):
    """Wait for a program; return its lines with the time that each came at."""
    limit = threading.Timer(TIME_LIMIT_S, process.kill)
    limit.start()
    try:
        lines = [(time.time(), line) for line in process.stdout]
        process.wait()
    finally:
        limit.cancel()
    return lines


def read(lines, start=0.0):
    """Find the figures in what a program printed.

    Parameters
    ----------
    lines : list of (float, str)
        Each with the time that it came at.
    start : float
        When the program was started.

    Returns
    -------
    dict
        ``speed`` in samples/s of one process, over all its speed lines but the first;
        ``parameters``; ``peak_mb``; ``accuracy``, the last; in seconds from the start
        ``started_s``, when our program begins to train, ``first_batch_s`` and ``last_epoch_s``; and
        what a line like ``Figure NAME: NUMBER`` names.
    """
    text = "".join(line for _, line in lines)
    found = {name: float(value) for name, value in re.findall(r"Figure (\w+): (\S+)", text)}
    speeds = [float(s) for s in re.findall(r"Speed: ([\d.]+) samples/sec", text)]
    if len(speeds) > 1:
        found["speed"] = statistics.harmonic_mean(speeds[1:])  # each is of as many samples
    for name, pattern in (
        ("parameters", r"Parameters: (\d+)"),
        ("peak_mb", r"Peak memory: ([\d.]+) MB"),
        ("accuracy", r"Test_acc ([\d.]+)"),
    ):
        values = re.findall(pattern, text)
        if values:
            found[name] = float(values[-1])
    for name, words in (("started_s", "steps an epoch"), ("last_epoch_s", "Test_acc")):
        moments = [moment for moment, line in lines if words in line]
        if moments:
            found[name] = moments[-1] - start
    first = re.search(r"First batch at ([\d.]+)", text)
    if first:
        found["first_batch_s"] = float(first[1]) - start
    return found


def ours(network="resnet18_v1", batch_size=256, steps=40, workers=1, hosts=1, lines=10, options=()):
    """Our program on one repeated batch, alone or with as many servers as workers.

    With Horovod there are no servers. ``hosts`` share the steps when :meth:`hosts.Hosts.ours` has
    made a job of it.
    """
    num_examples = min(steps * batch_size * workers * hosts, 10_000)  # as many are made
    command = [
        *OURS, "--data", "synthetic", "--network", network, "--batch-size", str(batch_size),
        "--num-examples", str(num_examples), "--num-epochs", "1",
        "--benchmark", "1", "--disp-batches", str(lines), *options,
    ]  # fmt: skip
    if workers == 1:
        return command
    return [*LAUNCH, "-n", str(workers), "-s", str(num_servers(command, workers)), *command]


def num_servers(command, workers):
    """Return how many servers a command of ours needs."""
    return 0 if "horovod" in command else workers


def torch(network="resnet18", batch_size=256, steps=40, workers=1, lines=10, options=()):
    """PyTorch's, alone or with DDP over gloo under torchrun."""
    command = [
        str(PEERS / "torch_train.py"), "--network", network, "--batch-size", str(batch_size),
        "--num-batches", str(steps), "--disp-batches", str(lines), *options,
    ]  # fmt: skip
    if workers == 1:
        return [str(PEERS_PYTHON), *command]
    launcher = ["-m", "torch.distributed.run", "--nproc-per-node", str(workers)]
    return [str(PEERS_PYTHON), *launcher, *command]


def has_horovod():
    """Tell whether Horovod can be measured; say so if it cannot."""
    if not HAS_HOROVOD:
        print("left out: Horovod, which needs `make setup HOROVOD=1`", flush=True)
    return HAS_HOROVOD


# Prints how much memory a program took at most.
PEAK_MB = """
import resource, subprocess, sys
status = subprocess.call(sys.argv[1:])
peak_mb = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
print(f"Peak memory: {peak_mb:.1f} MB")
sys.exit(status)
"""


def with_peak_memory(command):
    """Turn a program into one that also tells its peak memory."""
    return [sys.executable, "-c", PEAK_MB, *command]
