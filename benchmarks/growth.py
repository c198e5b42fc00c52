#!/usr/bin/env python3
"""How the cost of the exchange grows with the workers: measured, beside the physical limit.

    sudo python benchmarks/growth.py            measure 1 to 8 workers, and draw
    sudo python benchmarks/growth.py --quick    fewer of them, each once
    python benchmarks/growth.py --draw          draw again what was measured

Each worker has a host of its own, of tools/cluster.py, with a server on it and a cable of a fixed
rate. Eight workers cannot compute at once on a few cores, so growth_worker.py sleeps instead of
computing, and exchanges real arrays. The work of a worker is fixed: the ideal is a flat
line. Writes growth.csv and growth.svg, and prints the table for docs/growth.md.
"""

import argparse
import csv
import datetime
import re
import subprocess
import sys
from functools import partial
from pathlib import Path

from comparison import take_turns
from contenders import ROOT, TIME_LIMIT_S, Failed
from growth_model import (
    Future,
    bytes_a_second,
    fit,
    in_turn,
    one_server,
    overlapped,
    servers_everywhere,
)
from growth_plot import draw
from hosts import cluster
from measured import where
from report import RESULTS, positive

WORKERS = (1, 2, 3, 4, 6, 8)
ONE_SERVER = (2, 4)  # workers of the runs with a single server
FIGURES = re.compile(
    r"Step: (\S+) s, one number: (\S+) s, one of many: (\S+) s, processors busy: (\S+)"
)
GIVEN = ("rate", "elements", "buckets", "forward", "backward", "steps")


def run_job(hosts, workers, servers, overlap, options, *flags):
    """Run a job on the first hosts of the cluster; return its figures."""
    program = [sys.executable, "benchmarks/growth_worker.py", "--overlap", str(overlap), *flags]
    for name in ("buckets", "elements", "forward", "backward", "steps"):
        program += [f"--{name}", str(getattr(options, name))]
    command = hosts.ours(program, workers, servers)
    try:
        done = subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, timeout=TIME_LIMIT_S
        )
    except subprocess.TimeoutExpired:
        raise Failed(f"{' '.join(command)}: not done in {TIME_LIMIT_S} s") from None
    found = FIGURES.search(done.stdout)
    if done.returncode or not found:
        raise Failed(f"{' '.join(command)}: status {done.returncode}\n{done.stdout}{done.stderr}")
    return dict(zip(("step_s", "number_s", "of_many_s", "busy"), map(float, found.groups())))


def measure(options, table):
    """Run all jobs, and write a row for each of their runs to a table."""
    jobs = {(w, w, overlap): None for w in options.workers for overlap in (0, 1)}
    if not options.quick:
        jobs.update({(w, 1, 0): None for w in ONE_SERVER if w in options.workers})
    with cluster(max(options.workers), options.rate, options.name) as hosts:
        runs = {
            f"{w} workers, {s} servers, overlap {o}": partial(run_job, hosts, w, s, o, options)
            for w, s, o in jobs
        }
        if options.quick:
            found = {name: [act()] for name, act in runs.items()}
        else:
            found = take_turns(runs, options.rounds, partial(print, flush=True))
    given = {name: getattr(options, name) for name in GIVEN}
    common = {"date": datetime.date.today().isoformat()}
    common.update((name, where()[name]) for name in ("machine", "python"))
    rows = read(table) if options.more else []
    rows += [
        {"workers": w, "servers": s, "overlap": o, **figures, **given, **common}
        for (w, s, o), all_figures in zip(jobs, found.values())
        for figures in all_figures
    ]
    rows.sort(key=lambda row: (int(row["workers"]), -int(row["servers"]), int(row["overlap"])))
    table.parent.mkdir(exist_ok=True)
    with open(table, "w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)


def read(table):
    """Return the rows of a table."""
    if not table.exists():
        raise Failed(f"{table}: not there; measure first, without --draw and --more")
    with open(table, newline="") as file:
        return list(csv.DictReader(file))


class Measured:
    """The rows of growth.csv."""

    def __init__(self, rows):
        first = rows[0]
        self._rows = rows
        if any(row[name] != first[name] for row in rows for name in GIVEN):
            raise Failed("growth.csv: runs with different options; measure without --more")
        self.buckets = int(first["buckets"])
        self.size = 4 * int(first["elements"]) * self.buckets
        self.forward, self.backward = float(first["forward"]), float(first["backward"])
        self.rate = bytes_a_second(first["rate"])
        self.workers = sorted({int(r["workers"]) for r in rows})

    def figures(self, workers, overlap, figure="step_s", is_single=False):
        """Return a figure of all runs of a job; with more than one server unless told."""
        return [
            float(row[figure])
            for row in self._rows
            if (int(row["workers"]), int(row["overlap"])) == (workers, overlap)
            and int(row["servers"]) == (1 if is_single else workers)
        ]

    def best(self, workers, overlap, figure="step_s", is_single=False):
        """Return the least figure of all runs: what else the machine does only adds to it."""
        return min(self.figures(workers, overlap, figure, is_single))

    def fit(self):
        """Fit what is in :class:`Fit`, the arrays' part to the steps without overlap."""
        computing = self.forward + self.backward
        exchanges = [self.best(w, 0) - computing for w in self.workers]
        of_many = [min(self.best(w, o, "of_many_s") for o in (0, 1)) for w in self.workers]
        fewest = next(w for w in self.workers if w > 1)
        round_trip = min(self.best(fewest, o, "number_s") for o in (0, 1))
        return fit(self.workers, exchanges, of_many, round_trip, self.size, self.rate)

    def table(self):
        """Return the lines of a table: measured beside the limits."""
        lines = [
            "| workers | in turn, s | limit | measured / limit | overlapped, s | "
            f"limit, {self.buckets} buckets | measured / limit | limit, perfect overlap |",
            "|---|---|---|---|---|---|---|---|",
        ]
        for workers in self.workers:
            exchange = servers_everywhere(workers, self.size, self.rate)
            cells = [str(workers)]
            for overlap, limit in (
                (0, in_turn(self.forward, self.backward, exchange)),
                (1, overlapped(self.forward, self.backward, exchange, self.buckets)),
            ):
                value = self.best(workers, overlap)
                cells += [f"{value:.3f}", f"{limit:.3f}", f"{value / limit:.3f}"]
            cells.append(f"{overlapped(self.forward, self.backward, exchange):.3f}")
            lines.append(f"| {' | '.join(cells)} |")
        return lines


def tell(measured):
    """Print what docs/growth.md is made of."""
    fitted, future = measured.fit(), Future()
    print(*measured.table(), sep="\n")
    for w in ONE_SERVER:
        if measured.figures(w, 0, is_single=True):
            found = measured.best(w, 0, is_single=True)
            exchange = one_server(w, measured.size, measured.rate, buckets=measured.buckets)
            limit = in_turn(measured.forward, measured.backward, exchange)
            print(f"one server, {w} workers: {found:.3f} s, limit {limit:.3f}")
    print(
        f"fitted: {fitted.share:.3f} of the rate, {fitted.fixed * 1e9:.2f} ms a MB besides, "
        f"{fitted.latency * 1e6:.0f} µs a message, {fitted.message * 1e6:.0f} µs more a worker"
    )
    for name in future.rates:
        for w in (8, 32, 64, future.most):
            rate = bytes_a_second(name)
            shares = {
                "servers": future.efficiency(w, rate, fitted),
                "in turn": future.efficiency(w, rate, fitted, overlap=False),
                "ring": future.efficiency(w, rate, fitted, is_ring=True),
                "cables alone": future.efficiency(w, rate),
            }
            print(f"{name}, {w} hosts: " + ", ".join(f"{k} {v:.3f}" for k, v in shares.items()))


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--draw", action="store_true", help="measure nothing, draw growth.csv")
    parser.add_argument("--quick", action="store_true", help="1, 2 and 4 workers, each once")
    parser.add_argument("--more", action="store_true", help="keep the earlier runs, too")
    parser.add_argument("--rounds", type=positive, default=1, help="each runs every job twice")
    parser.add_argument("--workers", type=int, nargs="+", metavar="W", help="numbers of workers")
    parser.add_argument("--rate", default="200mbit", help="of each cable, as tc has it")
    parser.add_argument("--buckets", type=int, default=4)
    parser.add_argument(
        "--elements", type=int, default=1_000_000, help="of a bucket; fewer lie on one server"
    )
    parser.add_argument("--forward", type=float, default=0.2, help="seconds")
    parser.add_argument("--backward", type=float, default=0.4, help="seconds")
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--name", default="growth", help="of the cluster; ended if it is up")
    parser.add_argument("--output", type=Path, default=RESULTS, help="folder")
    options = parser.parse_args()
    options.workers = options.workers or ((1, 2, 4) if options.quick else WORKERS)
    table = options.output / "growth.csv"
    try:
        if not options.draw:
            bytes_a_second(options.rate)  # else it is known to be wrong when all is measured
            measure(options, table)
        measured = Measured(read(table))
    except Failed as error:
        sys.exit(f"growth.py: {error}")
    if len(measured.workers) > 1:  # one point makes no line
        tell(measured)
        draw(measured, options.output / "growth.svg")


if __name__ == "__main__":
    main()
