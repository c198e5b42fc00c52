#!/usr/bin/env python3
"""Measure this project beside its peers, in one run, and write down what came out.

    python benchmarks/bench.py                      everything but what needs real images
    python benchmarks/bench.py --data DIR           that too (DIR/cifar10_train.rec, …_val.rec)
    python benchmarks/bench.py --only workers-32    one group; --list tells their names
    python benchmarks/bench.py --rounds 1           quicker, with wider intervals

Writes benchmarks/results/runs.csv (a line for each run of each program) and ratios.csv, of which it
draws benchmarks/results/ratios.svg and fills the table in RESULTS.md. PyTorch runs from
.venv-peers, which `make bench` builds.
"""

import argparse
import ast
import sys
from functools import partial
from pathlib import Path

from comparison import ratio, take_turns
from contenders import LAUNCH, PEERS, Failed, ours, run, torch
from hosts import bytes_sent, cluster, ours_on_hosts, torch_on_hosts
from report import Row, keep, write

RUNGS = next(  # ladder.py imports MXNet, which this program leaves to others
    ast.literal_eval(node.value)
    for node in ast.parse((PEERS.parent / "ladder.py").read_text()).body
    if isinstance(node, ast.Assign) and node.targets[0].id == "RUNGS"
)
ONE_THREAD = {"OMP_NUM_THREADS": "1"}


def one_process(options):
    """ResNet-18, batch 256, all cores; ours twice, which shows how far equal programs differ."""
    runs = {
        "ours": partial(run, ours()),
        "torch": partial(run, torch()),
        "torch channels-last": partial(run, torch(options=["--channels-last"])),
        "ours again": partial(run, ours()),
    }
    found = take_turns(runs, options.rounds)
    best = max(("torch", "torch channels-last"), key=lambda name: median_of(found, name, "speed"))
    yield found, Row("ResNet-18, one process: ours / PyTorch", "ours", best, "speed", 1.05)
    yield found, Row("the same program twice (control)", "ours", "ours again", "speed", None)


def fast_one_process(options):
    """The fast network in one process."""
    both = ("--network", "fast", "--channels-last")
    runs = {
        "ours": partial(run, ours("fast")),
        "torch": partial(run, torch("fast", options=both[2:])),
    }
    found = take_turns(runs, options.rounds)
    yield found, Row("fast network, one process: ours / PyTorch", "ours", "torch", "speed", None)


def two_workers(batch_size, targets, network="resnet18_v1", steps=40):
    """Two workers beside two processes that have nothing to do with each other, and beside DDP."""

    def measure(options):
        alone = ours(network, batch_size, steps, options=["--kv-store", "local"])
        runs = {
            "ours": partial(run, ours(network, batch_size, steps, workers=2)),
            "independent": partial(run, alone, alone, env=ONE_THREAD),
        }
        title = f"{network}, batch {batch_size} a worker"
        if network == "resnet18_v1":
            runs["ddp"] = partial(
                run,
                torch(batch_size=batch_size, steps=steps, workers=2, options=["--channels-last"]),
            )
        found = take_turns(runs, options.rounds)
        yield (
            found,
            Row(f"{title}: 2 workers / 2 processes", "ours", "independent", "speed", targets[0]),
        )
        if network == "resnet18_v1":
            yield found, Row(f"{title}: ours / DDP", "ours", "ddp", "speed", targets[1])

    measure.__doc__ = two_workers.__doc__
    return measure


def loader(options):
    """Images a second of the loaders, in one thread."""
    program = [sys.executable, "benchmarks/loading.py"]
    runs = {n: partial(run, [*program, n], env=ONE_THREAD) for n in ("ours", "published")}
    found = take_turns(runs, options.rounds)
    found["100,000"] = [{"speed": 100_000}] * len(found["ours"])
    title = "images a second of the loader, one thread"
    yield found, Row(f"{title} / 100,000", "ours", "100,000", "speed", 1.0)
    yield found, Row(f"{title}: ours / published", "ours", "published", "speed", None)


def start(options):
    """From the command line to the first trained batch, two workers of ResNet-18."""
    small = {"batch_size": 128, "steps": 2, "workers": 2, "lines": 1}
    runs = {"ours": partial(run, ours(**small)), "ddp": partial(run, torch(**small))}
    found = take_turns(runs, options.rounds)
    title = "time to the first batch, 2 workers: ours / torchrun"
    yield found, Row(title, "ours", "ddp", "first_batch_s", 1.0, less_is_better=True)


def published(options):
    """The published example for an epoch, beside the default program: memory and time."""
    if not options.data:
        return
    records = ["--data-train", f"{options.data}/cifar10_train.rec"]
    records += ["--data-val", f"{options.data}/cifar10_val.rec", "--benchmark", "1"]
    job = [*LAUNCH, "-n", "2", "-s", "2", sys.executable]
    runs = {
        "ours": partial(run, [*job, "cifar10_dist/cifar10_dist.py", *records, "--num-epochs", "1"]),
        "published": partial(run, [*job, str(PEERS / "published.py"), options.data, "1"]),
    }
    found = take_turns(runs, max(1, options.rounds // 2))
    title = "peak memory of a worker: ours / published"
    yield found, Row(title, "ours", "published", "peak_mb", 1.0, less_is_better=True)
    title = "one epoch on two workers, from start to end: published / ours"
    yield found, Row(title, "published", "ours", "seconds", None)


def wire(hosts):
    """Bytes that all hosts send in a step, over 2 (W - 1) G: what a ring, too, would send."""

    def measure(options):
        with cluster(hosts):
            runs = {}
            for steps in (10, 50):
                program = ours(batch_size=16, steps=steps)
                program[program.index("--num-examples") + 1] = str(16 * steps * hosts)
                command = ours_on_hosts(program, hosts)

                def count(command=command):
                    before = bytes_sent()
                    figures = run(command)
                    return dict(figures, bytes=bytes_sent() - before)

                runs[f"{steps} steps"] = count
            found = take_turns(runs, 1)
        more, less = (found[f"{n} steps"] for n in (50, 10))
        ideal = 2 * (hosts - 1) * 4 * more[0]["parameters"]
        found["sent"] = [
            {"bytes_a_step": (m["bytes"] - s["bytes"]) / 40} for m, s in zip(more, less)
        ]
        found["2 (W - 1) G"] = [{"bytes_a_step": ideal}] * len(more)
        title = f"bytes sent in a step by {hosts} hosts / 2 (W - 1) G"
        yield found, Row(title, "sent", "2 (W - 1) G", "bytes_a_step", 1.08, less_is_better=True)

    measure.__doc__ = wire.__doc__
    return measure


def link(rate):
    """Two hosts with cables of a rate: ours and DDP, batch 128 a worker."""

    def measure(options):
        with cluster(2, rate) as addresses:
            program = ours(batch_size=128, steps=20, lines=5)
            program[program.index("--num-examples") + 1] = str(20 * 128 * 2)
            other = torch(batch_size=128, steps=20, lines=5, options=["--channels-last"])
            runs = {
                "ours": partial(run, ours_on_hosts(program, 2)),
                "ddp": partial(run, torch_on_hosts(other, addresses)),
            }
            found = take_turns(runs, max(1, options.rounds // 2))
        title = f"two hosts at {rate}, ResNet-18, batch 128: ours / DDP"
        yield found, Row(title, "ours", "ddp", "speed", 1.0)

    measure.__doc__ = link.__doc__
    return measure


def ladder(options):
    """From the published way of training to ours, a change at a time."""
    program = [sys.executable, "benchmarks/ladder.py", "--rungs"]
    alone, together = {}, {}
    for rung in range(5):
        alone[str(rung)] = partial(run, [*program, str(rung)])
    for rung in (4, 5, 6):
        words = [*program, str(rung), "--batch-size", "32", "--steps", "60", "--disp-batches", "20"]
        together[str(rung)] = partial(run, [*LAUNCH, "-n", "2", "-s", "2", *words])
    for runs, where in ((alone, "one process"), (together, "2 workers, batch 32 each")):
        found = take_turns(runs, max(1, options.rounds // 2))
        names = list(runs)
        for before, rung in zip(names, names[1:]):
            title = f"ladder, {where}: {RUNGS[int(rung) - 1]}"
            yield found, Row(title, rung, before, "speed", None)


def median_of(found, name, figure):
    """Return the median figure of a program's runs."""
    values = sorted(figures[figure] for figures in found[name])
    return values[len(values) // 2]


GROUPS = {
    "one-process": one_process,
    "fast": fast_one_process,
    "workers-128": two_workers(128, (0.96, 1.10)),
    "workers-32": two_workers(32, (0.72, 1.0), steps=100),
    "workers-fast": two_workers(256, (0.97, None), "fast", steps=19),
    "start": start,
    "loader": loader,
    "published": published,
    "ladder": ladder,
    "bytes-2": wire(2),
    "bytes-3": wire(3),
    "1gbit": link("1gbit"),
    "100mbit": link("100mbit"),
}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", action="append", choices=GROUPS, metavar="GROUP")
    parser.add_argument("--rounds", type=int, default=3, help="each runs every program twice")
    parser.add_argument("--data", help="folder of cifar10_train.rec and cifar10_val.rec")
    parser.add_argument("--list", action="store_true", help="list the groups")
    options = parser.parse_args()
    if options.list:
        for name, measure in GROUPS.items():
            print(f"{name:14} {measure.__doc__.splitlines()[0]}")
        return
    if options.data:
        options.data = str(Path(options.data).resolve())
    for name in options.only or GROUPS:
        print(f"--- {name}", flush=True)
        try:
            for found, row in GROUPS[name](options):
                a, b = ([f[row.figure] for f in found[n]] for n in (row.a, row.b))
                check_sizes(found, row)
                keep(name, found, row, ratio(a, b))
                print(f"{row.title}: {ratio(a, b)}", flush=True)
        except Failed as error:
            sys.exit(f"bench.py: {error}")
    write()


def check_sizes(found, row):
    """See that the compared networks have the same number of parameters."""
    sizes = {f["parameters"] for name in (row.a, row.b) for f in found[name] if "parameters" in f}
    if len(sizes) > 1:
        raise Failed(f"{row.title}: networks of different sizes: {sizes}")


if __name__ == "__main__":
    main()
