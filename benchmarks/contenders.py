"""The programs that are compared, as commands, where they run, and how to read what they print."""

import contextlib
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

ROOT = Path(__file__).resolve().parent.parent
PEERS = ROOT / "benchmarks" / "peers"
PEERS_PYTHON = ROOT / ".venv-peers" / "bin" / "python"
LAUNCH = [sys.executable, "tools/launch.py", "--launcher", "local"]
ONE_THREAD = {"OMP_NUM_THREADS": "1"}
RING = ["--kv-store", "horovod"]
HAS_HOROVOD = importlib.util.find_spec("horovod") is not None
TIME_LIMIT_S = 3600
# Threads and the like are for the programs to choose.
CHOSEN_ELSEWHERE = re.compile(r"OMP_|MKL_|MXNET_|KMP_|TORCH|PYTHONPATH")


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

    Raises
    ------
    RuntimeError
        If one is missing, or fails: with all that it printed.
    """
    base = {k: v for k, v in os.environ.items() if not CHOSEN_ELSEWHERE.match(k)}
    base.update(env or {}, PYTHONUNBUFFERED="1")
    missing = [c[0] for c in commands if not shutil.which(c[0])]
    if missing:
        raise RuntimeError(f"{missing[0]} is missing; `make bench` builds .venv-peers")
    start = time.time()
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
            raise RuntimeError(f"{' '.join(process.args)}: status {process.returncode}\n{text}")
        found.append(read(lines, start))
    for process, figures in zip(running, found):
        if figures.keys() != found[0].keys():
            names = ", ".join(figures.keys() ^ found[0].keys())
            raise RuntimeError(f"{' '.join(process.args)}: not all programs printed {names}")
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
        ``first_batch_s`` and ``last_epoch_s``; and what a line like ``Figure NAME: NUMBER`` names.
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
    tested = [moment for moment, line in lines if "Test_acc" in line]
    if tested:
        found["last_epoch_s"] = tested[-1] - start
    first = re.search(r"First batch at ([\d.]+)", text)
    if first:
        found["first_batch_s"] = float(first[1]) - start
    return found


def ours(network="resnet18_v1", batch_size=256, steps=40, workers=1, hosts=1, lines=10, options=()):
    """Return the command of our program on one repeated batch: alone, or with a server a worker.

    With Horovod there are no servers. ``hosts`` share the steps when :meth:`Hosts.ours` has made a
    job of it.
    """
    num_examples = min(steps * batch_size * workers * hosts, 10_000)  # as many are made
    command = [
        sys.executable, "cifar10_dist/cifar10_dist.py", "--data", "synthetic",
        "--network", network, "--batch-size", str(batch_size),
        "--num-examples", str(num_examples), "--num-epochs", "1",
        "--benchmark", "1", "--disp-batches", str(lines), *options,
    ]  # fmt: skip
    if workers == 1:
        return command
    return [*LAUNCH, "-n", str(workers), "-s", str(_num_servers(command, workers)), *command]


def _num_servers(command, workers):
    """Return how many servers a command of ours needs."""
    return 0 if "horovod" in command else workers


def torch(network="resnet18", batch_size=256, steps=40, workers=1, lines=10, options=()):
    """Return the command of PyTorch's: alone, or with DDP over gloo under torchrun."""
    command = [
        str(PEERS / "torch_train.py"), "--network", network, "--batch-size", str(batch_size),
        "--num-batches", str(steps), "--disp-batches", str(lines), *options,
    ]  # fmt: skip
    if workers == 1:
        return [str(PEERS_PYTHON), *command]
    launcher = ["-m", "torch.distributed.run", "--nproc-per-node", str(workers)]
    return [str(PEERS_PYTHON), *launcher, *command]


@contextlib.contextmanager
def cluster(count, rate=None, name="bench"):
    """Start hosts on this machine (Linux, root), with cables of a rate; stop them at the end.

    Yields
    ------
    Hosts
    """
    hosts = Hosts(name)
    hosts.control("down")  # of a measurement that was killed
    hosts.control("up", "--hosts", str(count), *(["--rate", rate] if rate else []))
    try:
        yield hosts
    finally:
        hosts.control("down")


class Hosts:
    """The hosts of tools/cluster.py that have a name in common."""

    def __init__(self, name):
        self._name, self._config = name, ROOT / ".cluster" / name / "ssh_config"

    def control(self, *words):
        """Call tools/cluster.py, and return what it prints."""
        command = [sys.executable, "tools/cluster.py", "--name", self._name, *words]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")
        return done.stdout

    def ours(self, program, workers, servers=None):
        """Turn a program into a job on the first hosts, a worker on each; as many servers."""
        servers = _num_servers(program, workers) if servers is None else servers
        launch = [
            sys.executable, "tools/launch.py", "-n", str(workers), "-s", str(servers),
            "-H", "".join(f"d{i + 1}," for i in range(workers)), f"--ssh-option=-F{self._config}",
            "--env", "OMP_NUM_THREADS=1",
        ]  # fmt: skip
        return [*launch, "sh", "-c", f"cd {ROOT} && exec {' '.join(program)}"]

    def torch(self, program):
        """Turn a command of :func:`torch` into one for each host, over ssh."""
        hosts = [line.split()[:2] for line in self.control("status").splitlines()]
        words = " ".join(program[1:])
        script = ""
        for rank, (host, _) in enumerate(hosts):
            start = (
                f"cd {ROOT} && OMP_NUM_THREADS=1 GLOO_SOCKET_IFNAME=eth0 {PEERS_PYTHON} "
                f"-m torch.distributed.run --nnodes {len(hosts)} --node-rank {rank} "
                f"--nproc-per-node 1 --master-addr {hosts[0][1]} --master-port 29400 {words} "
                "--threads 1"
            )
            script += f"ssh -F {self._config} {host} '{start}' & jobs=\"$jobs $!\"; "
        return ["sh", "-c", f"{script} for job in $jobs; do wait $job || exit 1; done"]
