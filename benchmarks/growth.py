#!/usr/bin/env python3
"""How the cost of the exchange grows with the workers: measured, beside the physical limit.

    sudo python benchmarks/growth.py                measure 1 to 8 workers, and draw
    sudo python benchmarks/growth.py --rate 1gbit   other cables; the results go to build/growth
    python benchmarks/growth.py --draw              draw again what was measured

Each worker has a host of its own, of tools/cluster.py, with a server on it and a cable of a fixed
rate. Eight workers cannot compute at once on a few cores, so growth_worker.py sleeps instead of
computing, and exchanges real arrays. The work of a worker is fixed: the ideal is a flat
line. Writes growth.csv and growth.svg, and prints the table for docs/growth.md; and steps.csv, for
the page of a step to play with: few servers, two-bit pushes, a slow worker.
"""

import argparse
import sys
from functools import partial
from itertools import product
from typing import NamedTuple

from comparison import take_turns, there_and_back
from contenders import ROOT, cluster, run
from growth_model import bytes_a_second, in_turn, one_server, overlapped, servers_everywhere
from report import RESULTS, plotting, read, where, write

BLUE, VERMILLION, GREEN = "#0072B2", "#D55E00", "#009E73"


class Work(NamedTuple):
    """The work of each worker: its cable's rate, elements of a bucket, times in seconds."""

    rate: str = "200mbit"
    elements: int = 1_000_000  # fewer lie on one server
    buckets: int = 4
    forward: float = 0.2
    backward: float = 0.4
    steps: int = 8


class Job(NamedTuple):
    """The workers of a job, and how they exchange."""

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


def measure(jobs, work, name="growth"):
    """Run every job twice, on hosts of their own; return a row for each run."""
    with cluster(max(job.workers for job in jobs), work.rate, name) as hosts:
        programs = {job: partial(run, command(hosts, job, work)) for job in jobs}
        found = take_turns(lambda _: there_and_back(programs), 1, partial(print, flush=True))
    times = ("step_s", "number_s", "of_many_s")
    return [
        {**job._asdict(), **{k: figures[k] for k in times}, **work._asdict(), **where()}
        for job, runs in found.items()
        for figures in runs
    ]


class Measured:
    """The rows of growth.csv."""

    def __init__(self, rows):
        work = Work(*(kind(rows[0][k]) for k, kind in Work.__annotations__.items()))
        self._rows = rows
        self.buckets, self.times = work.buckets, (work.forward, work.backward)
        self.array = 4 * work.elements * work.buckets, bytes_a_second(work.rate)  # bytes, rate
        self.workers = sorted({int(row["workers"]) for row in rows})

    def steps(self, *job):
        """Return the seconds of a step of each run of a job, the shortest first."""
        return sorted(
            float(row["step_s"])
            for row in self._rows
            if job == tuple(int(row[k]) for k in ("workers", "servers", "overlap"))
        )

    def limits(self, workers):
        """Return the limits of a step in seconds: in turn, overlapped, and perfectly overlapped."""
        exchange = servers_everywhere(workers, *self.array)
        return (
            in_turn(*self.times, exchange),
            overlapped(*self.times, exchange, self.buckets),
            overlapped(*self.times, exchange),
        )

    def limit_of_one_server(self, workers):
        exchange = one_server(workers, *self.array, buckets=self.buckets)
        return in_turn(*self.times, exchange)


def table(measured):
    """Return the lines of a table for docs/growth.md: measured beside the limits."""
    lines = [
        "| workers | in turn, s | limit | measured / limit | overlapped, s | "
        f"limit, {measured.buckets} buckets | measured / limit | limit, perfect overlap |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for workers in measured.workers:
        *both, perfect = measured.limits(workers)
        cells = [str(workers)]
        for overlap, limit in enumerate(both):
            value = measured.steps(workers, workers, overlap)[0]
            cells += [f"{value:.3f}", f"{limit:.3f}", f"{value / limit:.3f}"]
        lines.append(f"| {' | '.join(cells)} | {perfect:.3f} |")
    for workers in measured.workers[1:]:
        steps, limit = measured.steps(workers, 1, 0), measured.limit_of_one_server(workers)
        if steps:
            lines.append(f"one server, {workers} workers: {steps[0]:.3f} s, limit {limit:.3f}")
    return lines


def draw(measured, path):
    """Draw seconds a step over the workers: runs as points, limits as lines."""
    plt = plotting("growth")
    figure, axis = plt.subplots(figsize=(7, 5.6))
    every = [1 + place / 10 for place in range(10 * (measured.workers[-1] - 1) + 1)]
    in_turns, overlaps, perfect = zip(*map(measured.limits, every))
    alone = list(map(measured.limit_of_one_server, every))
    for name, color, style, steps in (
        ("limit: one server, in turn", GREEN, "-", alone),
        ("limit: a server a host, in turn", VERMILLION, "-", in_turns),
        ("limit: a server a host, overlapped", BLUE, "-", overlaps),
        ("limit: a server a host, perfect overlap", BLUE, ":", perfect),
    ):
        axis.plot(every, steps, color=color, linestyle=style, linewidth=1.8, label=name)
    highest = 0.0
    for name, marker, color, is_single, overlap in (
        ("measured: one server, in turn", "^", GREEN, True, 0),
        ("measured: a server a host, in turn", "o", VERMILLION, False, 0),
        ("measured: a server a host, overlapped", "s", BLUE, False, 1),
    ):
        points = [
            (workers, step_s)
            for workers in measured.workers[is_single:]
            for step_s in measured.steps(workers, 1 if is_single else workers, overlap)
        ]
        if points:
            axis.plot(*zip(*points), marker, color=color, markeredgecolor="white", label=name)
            highest = max(highest, *(step_s for _, step_s in points))
    axis.set_ylim(0, 1.1 * highest)
    axis.set_xticks(measured.workers)
    axis.set_xlabel("workers, each on a host of its own")
    axis.set_ylabel("seconds a step")
    axis.grid(color="#DDDDDD", linewidth=0.6)
    axis.legend(ncol=2, fontsize=8, frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.12))
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None}, facecolor="white")
    plt.close(figure)


def rate(text):
    """Return a rate in tc's notation, checked, for argparse."""
    bytes_a_second(text)
    return text


def main():
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
    measured = Measured(rows)
    print(*table(measured), sep="\n")
    draw(measured, folder / "growth.svg")


if __name__ == "__main__":
    main()
