#!/usr/bin/env python3
"""How the cost of the exchange grows with the workers: measured, beside the physical limit.

    sudo .venv/bin/python benchmarks/growth.py                1 to 8 workers
    sudo .venv/bin/python benchmarks/growth.py --rate 1gbit   the results go to build/growth
    .venv/bin/python benchmarks/growth.py --draw              draw again what was measured

Each worker has a host of its own, of tools/cluster.py, with a server on it and a cable of a fixed
rate. Eight workers cannot compute at once on a few cores, so growth_worker.py sleeps instead of
computing, and exchanges real arrays. The work of a worker is fixed: the ideal is a flat line.
Writes growth.csv, growth.svg and the tables that docs/growth.md and RESULTS.md make of them; and
steps.csv, for the page of a step to play with: few servers, two-bit pushes, a slow worker.
"""

import argparse
import sys
from functools import partial
from itertools import product
from typing import NamedTuple

from comparison import take_turns, there_and_back
from contenders import PEERS_PYTHON, ROOT, cluster, run
from growth_model import Measured, bytes_a_second
from ratio_plot import plotting
from report import growth_table, refresh
from tables import RESULTS, read, where, write

ROUNDS = 2  # four runs of each job
WAYS = (  # in the plot: name, colour, marker, dashes, whether one server adds up all, and overlaps
    ("one server in all,\nin turn", "#00734D", "^", (1, 1), True, 0),
    ("a server a host, in turn", "#C45500", "o", (5, 2), False, 0),
    ("a server a host, overlapped", "#0072B2", "s", (6, 2, 1, 2), False, 1),
)


class Work(NamedTuple):
    """What each worker does: the rate is of its cable, the elements of a bucket, times in s."""

    rate: str = "200mbit"
    elements: int = 1_000_000  # fewer lie on one server
    buckets: int = 4
    forward: float = 0.2
    backward: float = 0.4
    steps: int = 8


class Job(NamedTuple):
    """Who exchanges, and how."""

    workers: int
    servers: int
    overlap: int = 0
    two_bits: int = 0
    slow: float = 1.0  # the last worker computes so many times as long


JOBS = {
    "growth.csv": [
        *(Job(w, w, overlap) for w in (1, 2, 3, 4, 6, 8) for overlap in (0, 1)),
        *(Job(w, 1) for w in (2, 4)),
    ],
    "steps.csv": [
        Job(4, servers, overlap, two_bits, slow)
        for (servers, two_bits, slow), overlap in product(
            ((4, 0, 1.0), (2, 0, 1.0), (4, 1, 1.0), (4, 0, 2.0)), (0, 1)
        )
    ],
}


def command(hosts, job, work):
    """Return the command of a job on the first hosts of a cluster."""
    program = [sys.executable, "benchmarks/growth_worker.py"]
    for name in ("buckets", "elements", "forward", "backward", "steps"):
        program += [f"--{name}", str(getattr(work, name))]
    program += ["--overlap", str(job.overlap), "--two-bits", str(job.two_bits)]
    return hosts.ours([*program, "--slow", str(job.slow)], job.workers, job.servers)


def measure(jobs, work, name="growth", rounds=ROUNDS):
    """Run every job twice a round, on hosts of their own; return a row for each run."""
    with cluster(max(job.workers for job in jobs), work.rate, name) as hosts:
        programs = {job: partial(run, command(hosts, job, work)) for job in jobs}
        found = take_turns(lambda _: there_and_back(programs), rounds, partial(print, flush=True))
    times = ("step_s", "number_s", "of_many_s")
    return [
        {**job._asdict(), **{k: figures[k] for k in times}, **work._asdict(), **where(PEERS_PYTHON)}
        for job, runs in found.items()
        for figures in runs
    ]


def draw(measured, path):
    """Draw seconds a step over the workers: runs as marks, limits of whole workers as dashes."""
    plt = plotting("growth")
    size = 12.5  # points: 12 px at least on a phone
    figure, axis = plt.subplots(figsize=(5, 4.2))
    every = range(measured.workers[0], measured.workers[-1] + 1)
    lines = []
    for name, color, marker, dashes, is_single, overlap in WAYS:
        limits = [measured.limit(w, 1 if is_single else w, overlap) for w in every]
        axis.plot(every, limits, color=color, linewidth=1.8, dashes=dashes)
        points = [
            (workers, step_s)
            for workers in measured.workers[is_single:]
            for step_s in measured.steps(workers, 1 if is_single else workers, overlap)
        ]
        if points:
            axis.plot(*zip(*points), marker, color=color, markeredgecolor="white", markersize=8)
        lines.append((name, color, limits, [step_s for _, step_s in points]))
    top = 1.1 * max(step_s for *_, steps in lines for step_s in steps)
    axis.set_ylim(0, top)
    for (name, color, limits, steps), y in zip(lines, (None, 0.09, -0.14)):
        label = {"color": color, "fontsize": size, "fontweight": "bold"}
        if y is None:  # beside the last whole number below the top
            last = max(i for i, limit in enumerate(limits) if limit < 0.9 * top)
            axis.text(every[last] + 0.35, limits[last], name, va="top", **label)
        else:  # above all marks, below all
            far = max(limits[-1], *steps) if y > 0 else limits[-1]
            axis.text(every[-1], far + y * top, name, ha="right", va="center", **label)
    axis.plot([], [], "o", color="#666666", label="measured")
    axis.plot([], [], color="#666666", dashes=(5, 2), label="limit")
    axis.legend(fontsize=size, frameon=False, loc="upper left")
    axis.set_xticks(measured.workers)
    axis.tick_params(labelsize=size)
    axis.set_xlabel("workers, each on a host of its own", fontsize=size)
    axis.set_ylabel("seconds a step", fontsize=size)
    axis.grid(color="#DDDDDD", linewidth=0.6)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None}, facecolor="white")
    plt.close(figure)


def rate(text):
    """Read a rate, for argparse."""
    bytes_a_second(text)
    return text


def main():
    """Measure or draw, as the command line says."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--draw", action="store_true", help="measure nothing, draw growth.csv")
    parser.add_argument(
        "--rate", type=rate, default=Work().rate, help="of each cable, as tc has it"
    )
    options = parser.parse_args()
    folder = RESULTS if options.rate == Work().rate else ROOT / "build" / "growth"
    try:
        for name, jobs in JOBS.items() if not options.draw else ():
            write(folder / name, measure(jobs, Work(options.rate)))
    except RuntimeError as error:
        sys.exit(f"growth.py: {error}")
    rows = read(folder / "growth.csv")
    if not rows:
        parser.error(f"--draw: {folder / 'growth.csv'} is not there; measure first")
    print(*growth_table(folder), sep="\n")
    draw(Measured(rows), folder / "growth.svg")
    if folder == RESULTS:
        refresh()


if __name__ == "__main__":
    main()
