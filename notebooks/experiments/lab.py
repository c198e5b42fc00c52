"""Start the jobs that the notebook on scaling measures, and read what they say.

Every process computes on one thread, so that a worker is the same in all jobs.
"""

import csv
import functools
import json
import re
import shlex
import shutil

from gluon_dist.exchange.buckets import UNCUT, Buckets

import mxnet as mx
import numpy as np
from traces import read_trace

from growth_model import bytes_a_second, in_turn, overlapped, servers_everywhere
from helpers import ROOT, own_folder, run_quietly
from networks.by_name import get_network

HERE = ("--launcher", "local")
ONE_THREAD = {"OMP_NUM_THREADS": "1"}
TIME_PARTS = "python notebooks/programs/time_parts.py --data synthetic --num-examples 600"
HEADERS = 1514 / 1448  # bytes of a full packet on the cable, over those of the gradients in it
STEP = re.compile(r"Step: (\S+) s, one number: (\S+) s")


@functools.lru_cache(None)
def folder():
    """Return the folder of traces and logs; the first call makes it, empty."""
    return own_folder("notebook-07")


def job(num_workers, words, hosts=HERE):
    """Run a command on so many workers, and servers, on the first hosts; return what it prints."""
    hosts = [",".join(w.split(",")[:num_workers]) if w[:2] == "d1" else w for w in hosts]
    launch = ["python", "tools/launch.py", "-n", num_workers, *hosts] if num_workers > 1 else []
    status, lines = run_quietly(*launch, *words, timeout_s=400, **ONE_THREAD)
    if status:
        raise RuntimeError("\n".join(lines[-20:]))
    return lines


def time_parts(num_workers, flags, hosts=HERE):
    """Run time_parts.py, and return what each worker measured, in order of rank."""
    return _facts(job(num_workers, [*TIME_PARTS.split(), *flags.split()], hosts))


def trace(num_workers, flags):
    """Run time_parts.py as above, with traces of the workers and the servers in ``folder()``."""
    program = TIME_PARTS.replace("notebooks/", f"{shlex.quote(str(ROOT))}/notebooks/")
    # A server writes to the folder in which it was started.
    words = [f"cd {folder()} && {program} {flags} --profile trace.json"]
    return _facts(job(num_workers, words))


def read_traces():
    """Return what :func:`trace` wrote of two workers and two servers, by name."""
    names = {"worker 0": "", "worker 1": "rank1_"}
    names.update({f"server {rank}": f"rank{rank}_server_" for rank in range(2)})
    return {who: read_trace(ROOT / folder() / f"{name}trace.json") for who, name in names.items()}


def _facts(lines):
    found = (re.search('{".*}', line) for line in lines)
    facts = [json.loads(match[0]) for match in found if match]
    return sorted(facts, key=lambda fact: fact["rank"])


def exchange(num_workers, hosts, computing_s, megabytes):
    """Exchange an array after sleeping in the place of computing.

    Returns
    -------
    step_s, number_s : float
        Seconds of such a step, and of exchanging a single number.
    """
    words = ["python", "benchmarks/growth_worker.py", "--overlap", 0, "--buckets", 1]
    words += ["--elements", round(megabytes * 1e6 / 4), "--steps", 4]
    words += ["--forward", computing_s / 2, "--backward", computing_s / 2]
    found = STEP.search("\n".join(job(num_workers, words, hosts)))
    return tuple(map(float, found.groups()))


def saved_growth():
    """Return the saved results of benchmarks/growth.py, beside what the formulas say.

    Returns
    -------
    dict of str to (list, list)
        For each curve: hosts, and seconds of a step.
    """
    with open(ROOT / "benchmarks/results/growth.csv", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["workers"] == row["servers"]]
    hosts = sorted({int(row["workers"]) for row in rows})
    forward, backward, buckets = (float(rows[0][k]) for k in ("forward", "backward", "buckets"))
    size, rate = 4 * float(rows[0]["elements"]) * buckets, bytes_a_second(rows[0]["rate"])
    sending = [servers_everywhere(w, size, rate) for w in hosts]
    curves = {}
    for overlap, name in enumerate(("compute, then exchange", "overlapped")):
        values = [[float(r["step_s"]) for r in rows if _is(r, w, overlap)] for w in hosts]
        curves[f"{name}: measured"] = hosts, [float(np.median(v)) for v in values]
        if overlap:
            limits = [overlapped(forward, backward, e, buckets) for e in sending]
        else:
            limits = [in_turn(forward, backward, e) for e in sending]
        curves[f"{name}: formula"] = hosts, limits
    return curves


def _is(row, workers, overlap):
    return int(row["workers"]) == workers and int(row["overlap"]) == overlap


def messages(network, workers):
    """Return what a worker sends in a step, with a server on each host: rows of a table.

    Returns
    -------
    list of (str, int, str)
        The way, the number of messages, and the kB of the smallest and of the largest.
    """
    params = get_network(network, 10, (3, 32, 32), [mx.cpu()]).collect_params().values()
    params, filled = [param for param in params if param.grad_req != "null"], Buckets()
    filled.move_gradients(params)
    buckets = [arrays[0].size for arrays in filled.buckets]
    ways = {
        "a plain Trainer, to servers": _cut([param.data().size for param in params], workers),
        "the training program, to servers": _cut(buckets, workers),
        "a ring": [size / workers for size in buckets for _ in range(2 * (workers - 1))],
    }
    kb = {way: sorted(4e-3 * size for size in sizes) for way, sizes in ways.items()}
    return [(way, len(s), f"{_short(s[0])} to {_short(s[-1])}") for way, s in kb.items()]


def _short(number):
    return f"{number:,.0f}" if number >= 1 else f"{number:.2f}"


def _cut(sizes, servers):
    """Return how many numbers each message has: MXNet cuts large arrays over all servers."""
    return [n / m for n in sizes for m in [servers if n >= UNCUT else 1] for _ in range(m)]


def two_bits_row(kind):
    """Return a row of a table: a store, and what arrives of each gradient in two bits."""
    found = two_bits(kind).partition(": ")[2]
    if not found.startswith("["):
        return [kind, "refused", "", ""]
    return [kind, *(", ".join(f"{value:g}" for value in sent) for sent in json.loads(found))]


def two_bits(kind):
    """Push gradients in two bits to a store; return the line that says what arrives."""
    words = ["python", "notebooks/programs/two_bits.py", kind]
    if "dist" in kind:
        words = ["python", "tools/launch.py", *HERE, "-n", 1, "-s", 1, *words]
    return next(line for line in job(1, words) if f"{kind}: " in line).replace("[worker 0] ", "")


def saved_resnet18(rate, program="ours"):
    """Return seconds of a step of ResNet-18 on two hosts, batch 128 each: saved in RESULTS.md.

    Of "independent" processes, each on one of the hosts' processors, which exchange nothing.
    """
    with open(ROOT / "benchmarks/results/runs.csv", encoding="utf-8") as file:
        runs = list(csv.DictReader(file))
    wanted = [rate, program, "speed"]  # of one worker
    speeds = [float(r["value"]) for r in runs if [r["group"], r["program"], r["figure"]] == wanted]
    return 128 / float(np.mean(speeds))


def train(name, num_workers, data, flags, program="cifar10_dist/cifar10_dist.py", hosts=HERE):
    """Train a small ResNet; return the rows of ``metrics.jsonl``, and the lines printed."""
    log_dir = f"{folder()}/{name}"
    shutil.rmtree(ROOT / log_dir, ignore_errors=True)
    words = ["python", program, *data, "--network", "resnet", "--num-layers", 8]
    lines = job(num_workers, [*words, *flags.split(), "--log-dir", log_dir], hosts)
    rows = (ROOT / log_dir / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(row) for row in rows], lines


def over_time(rows, name="train_accuracy"):
    """Return seconds since the beginning, and a figure, after each epoch."""
    return np.cumsum([row["seconds"] for row in rows]), [row[name] for row in rows]


def seconds_to(rows, target, at_first=0.1):
    """Return the seconds until an accuracy is reached, on a line through the epochs' ends.

    Parameters
    ----------
    rows : list of dict
        Of ``metrics.jsonl``.
    target : float
    at_first : float
        The accuracy before the first epoch: that of guessing one of ten classes.

    Returns
    -------
    float
        Infinite if it is not reached.
    """
    seconds, values = over_time(rows)
    before_s, before = 0.0, at_first
    for now_s, now in zip(seconds, values):
        if now >= target:
            return before_s + (now_s - before_s) * max(0, target - before) / (now - before)
        before_s, before = now_s, now
    return float("inf")
