#!/usr/bin/env python3
"""How the cost of the exchange grows with the workers: measured, beside what no program can beat.

    sudo python benchmarks/growth.py            measure 1 to 8 workers, and draw
    sudo python benchmarks/growth.py --quick    fewer of them, each once
    python benchmarks/growth.py --draw          draw again what was measured

Each worker has a host of its own, of tools/cluster.py, with a server on it and a cable of a fixed
rate. Eight workers cannot compute at once on a few cores, so growth_worker.py sleeps for as long as
computing would take, and exchanges real arrays. The work of a worker is fixed: the ideal is a flat
line. Writes growth.csv and growth.svg, and prints the table for RESULTS.md.
"""

import argparse
import csv
import datetime
import platform
import re
import subprocess
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import hosts
import numpy as np
from comparison import take_turns
from contenders import ROOT, TIME_LIMIT_S, Failed
from report import RESULTS, machine

WORKERS = (1, 2, 3, 4, 6, 8)
ONE_SERVER = (2, 4)  # workers of the runs with a single server
FIGURES = re.compile(
    r"Step: (\S+) s, one number: (\S+) s, one of many: (\S+) s, processors busy: (\S+)"
)
GIVEN = ("rate", "elements", "buckets", "forward", "backward", "steps")
UNITS = {"kbit": 125, "mbit": 125_000, "gbit": 125_000_000}  # bytes a second, as tc has them


# What it costs at least. Sizes are in bytes, rates in bytes a second. A cable carries as much in
# one direction while it carries in the other.


def servers_everywhere(workers, size, rate, latency=0.0):
    """Seconds to add up an array with a parameter server on each host.

    A host's worker sends all but its own server's part, and its server sends its part of the sum to
    all other workers: 2 (W - 1) / W of the array.

    Parameters
    ----------
    workers : int
    size : float
        Bytes of the array.
    rate : float
        Of a host's cable, bytes a second each way.
    latency : float
        Seconds of a message without content: one there, one back.

    Returns
    -------
    float
    """
    return bytes_of_host(workers, size) / rate + (2 * latency if workers > 1 else 0.0)


def ring(workers, size, rate, latency=0.0):
    """Seconds of an all-reduce around a ring: the same bytes, in 2 (W - 1) rounds."""
    return bytes_of_host(workers, size) / rate + 2 * (workers - 1) * latency


def one_server(workers, size, rate, latency=0.0, buckets=1):
    """Seconds with one server, beside one of the workers: (W - 1) G cross its cable each way.

    The sum of a bucket leaves while the next bucket comes in, so that only one is not overlapped.
    """
    crossing = (workers - 1) * size * (1 + 1 / buckets)
    return crossing / rate + (2 * latency if workers > 1 else 0.0)


def bytes_of_host(workers, size):
    """Return the bytes that each host sends, and receives: 2 (W - 1) / W of the array's."""
    return 2 * (workers - 1) / workers * size


def in_turn(forward, backward, exchange):
    """Seconds of a step that computes first and exchanges then."""
    return forward + backward + exchange


def overlapped(forward, backward, exchange, buckets=None):
    """Seconds of a step that sends each bucket as soon as backward has filled it.

    Either the last bucket's exchange comes after all of backward, or the exchange of all comes
    after the first bucket's part of it.

    Parameters
    ----------
    forward, backward, exchange : float
        Seconds; nothing is exchanged during the forward pass.
    buckets : int, optional
        Of equal size. None for infinitely many: forward + max(backward, exchange).

    Returns
    -------
    float
    """
    part = 1 / buckets if buckets else 0.0
    return forward + max(backward + exchange * part, backward * part + exchange)


# What is fitted to the measurement, and where that leads.


@dataclass(frozen=True)
class Fit:
    """What the measurement says about the hosts.

    Attributes
    ----------
    share : float
        Of the nominal rate, that the bytes of the arrays reach.
    fixed : float
        Seconds a byte of the array, whatever the number of workers: copying and adding.
    latency : float
        Seconds of a message: half of what two workers need to exchange one number.
    message : float
        Seconds that each worker's message, with its answer, adds to what a server has to do.
    """

    share: float
    fixed: float
    latency: float
    message: float


def line_through(x, y):
    """Return offset and slope of the straight line with the least squares."""
    slope, offset = np.polyfit(x, y, 1)
    return float(offset), float(slope)


def fit(workers, exchanges, of_many, round_trip, size, rate):
    """Fit the model of :func:`expected`.

    Parameters
    ----------
    workers : sequence of int
        At least two different ones.
    exchanges, of_many : sequence of float
        For each of them, seconds of exchanging the array, and one of many numbers.
    round_trip : float
        Seconds of exchanging one number.
    size, rate : float

    Returns
    -------
    Fit
    """
    start, slope = line_through([bytes_of_host(w, size) for w in workers], exchanges)
    _, message = line_through(workers, of_many)
    return Fit(1 / (slope * rate), start / size, round_trip / 2, message)


def expected(workers, size, rate, fitted, latency, buckets, is_ring=False):
    """Seconds of an exchange on hosts like the measured ones, with other cables.

    Parameters
    ----------
    workers : int
    size, rate, latency : float
        As in :func:`servers_everywhere`.
    fitted : Fit
    buckets : int
        Of each, every server gets a message from every worker.
    is_ring : bool
        A ring instead, which has rounds in the place of messages to servers.

    Returns
    -------
    float
    """
    if workers == 1:
        return 0.0
    away = ring if is_ring else servers_everywhere
    messages = 0.0 if is_ring else buckets * workers * fitted.message
    return away(workers, size, rate * fitted.share, latency) + size * fitted.fixed + messages


@dataclass(frozen=True)
class Future:
    """The hosts of the extrapolation: all that is assumed and not measured."""

    size: int = 45_000_000  # gradients of ResNet-18
    buckets: int = 3
    forward: float = 0.1 / 3
    backward: float = 0.2 / 3  # a step of 100 ms
    latency: float = 50e-6
    rates: tuple = ("10gbit", "100gbit")
    most: int = 256

    def efficiency(self, workers, rate, fitted=None, is_ring=False, overlap=True):
        """Return the time of computing over that of a step; without a fit, only cables cost."""
        if fitted:
            exchange = expected(
                workers, self.size, rate, fitted, self.latency, self.buckets, is_ring
            )
        else:
            exchange = servers_everywhere(workers, self.size, rate)
        if overlap:
            step = overlapped(self.forward, self.backward, exchange, self.buckets)
        else:
            step = in_turn(self.forward, self.backward, exchange)
        return (self.forward + self.backward) / step


# The measurement.


def bytes_a_second(rate):
    """Turn a rate as tc has it, such as 200mbit, into bytes a second."""
    found = re.fullmatch(r"([\d.]+)([kmg]bit)", rate)
    if not found:
        raise Failed(f"--rate {rate}: not like 200mbit or 1gbit")
    return float(found[1]) * UNITS[found[2]]


def run_job(workers, servers, overlap, options):
    """Run a job on the first hosts of the cluster; return its figures."""
    program = [sys.executable, "benchmarks/growth_worker.py", "--overlap", str(overlap)]
    for name in ("buckets", "elements", "forward", "backward", "steps"):
        program += [f"--{name}", str(getattr(options, name))]
    command = hosts.ours_on_hosts(program, workers)
    command[command.index("-H") + 1] = "".join(f"d{i + 1}," for i in range(workers))
    command[command.index("-s") + 1] = str(servers)
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=TIME_LIMIT_S)
    found = FIGURES.search(done.stdout)
    if done.returncode or not found:
        raise Failed(f"{' '.join(command)}: status {done.returncode}\n{done.stdout}{done.stderr}")
    return dict(zip(("step_s", "number_s", "of_many_s", "busy"), map(float, found.groups())))


def measure(options, table):
    """Run all jobs, and write a row for each of their runs to a table."""
    jobs = {(w, w, overlap): None for w in options.workers for overlap in (0, 1)}
    if not options.quick:
        jobs.update({(w, 1, 0): None for w in ONE_SERVER if w in options.workers})
    runs = {
        f"{w} workers, {s} servers, overlap {o}": partial(run_job, w, s, o, options)
        for w, s, o in jobs
    }
    with hosts.cluster(max(options.workers), options.rate):
        if options.quick:
            found = {name: [act()] for name, act in runs.items()}
        else:
            found = take_turns(runs, options.rounds, partial(print, flush=True))
    given = {name: getattr(options, name) for name in GIVEN}
    today = datetime.date.today().isoformat()
    common = {"date": today, "machine": machine(), "python": platform.python_version()}
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


# What came out of it.


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


BLUE, VERMILLION, GREEN, PURPLE = "#0072B2", "#D55E00", "#009E73", "#CC79A7"


def draw(measured, path):
    """Draw the measurement with its limits, and the extrapolation."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "growth"  # the same rows, the same bytes
    from matplotlib import pyplot as plt

    fitted = measured.fit()
    figure, (left, right) = plt.subplots(1, 2, figsize=(13, 6.6))
    draw_measured(left, measured, fitted)
    draw_extrapolated(right, fitted, Future())
    for axis in (left, right):
        axis.grid(color="#DDDDDD", linewidth=0.6)
        axis.set_axisbelow(True)
        place = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.13)}
        axis.legend(ncol=2, fontsize=9, frameon=False, **place)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None}, facecolor="white")
    plt.close(figure)


def draw_measured(axis, measured, fitted):
    """Seconds a step over the workers: runs as points, limits as lines."""
    work = measured.forward, measured.backward
    workers = np.linspace(1, measured.workers[-1], 141)
    array = measured.size, measured.rate
    servers = [servers_everywhere(w, *array) for w in workers]
    around = [ring(w, *array, fitted.latency) for w in workers]
    alone = [one_server(w, *array, buckets=measured.buckets) for w in workers]
    for name, join, exchanges, look in (
        ("limit: one server, in turn", in_turn, alone, (GREEN, "-")),
        ("limit: a server a host, in turn", in_turn, servers, (VERMILLION, "-")),
        ("limit: ring, in turn", in_turn, around, ("black", ":")),
        ("limit: a server a host, perfect overlap", overlapped, servers, (BLUE, "-")),
        ("limit: ring, perfect overlap", overlapped, around, ("#666666", ":")),
    ):
        color, style = look
        steps = [join(*work, exchange) for exchange in exchanges]
        width = 2.4 if style == ":" else 1.8
        axis.plot(workers, steps, color=color, linestyle=style, linewidth=width, label=name)
    highest = 0.0
    for name, marker, color, overlap, is_single in (
        ("measured: one server, in turn", "^", GREEN, 0, True),
        ("measured: a server a host, in turn", "o", VERMILLION, 0, False),
        ("measured: a server a host, overlapped", "s", BLUE, 1, False),
    ):
        runs = {
            w: sorted(measured.figures(w, overlap, is_single=is_single))
            for w in measured.workers
            if not (is_single and w == 1)
        }
        best = [(w, steps[0]) for w, steps in runs.items() if steps]
        others = [(w, step) for w, steps in runs.items() for step in steps[1:]]
        look = {"color": color, "markeredgecolor": "white", "markersize": 8}
        if others:
            axis.plot(*zip(*others), marker, alpha=0.35, **look)
        if best:
            axis.plot(*zip(*best), marker, label=name, **look)
        highest = max([highest, *(step for _, step in best + others)])
    axis.set_ylim(0, 1.1 * highest)
    axis.set_xticks(measured.workers)
    axis.set_xlabel("workers, each on a host of its own")
    axis.set_ylabel("seconds a step")
    axis.set_title(
        f"Measured: {measured.size / 1e6:g} MB in {measured.buckets} buckets, "
        f"cables of {measured.rate * 8 / 1e6:g} Mbit/s,\n"
        f"{sum(work):g} s of computing a step (slept); pale: the slower runs",
        fontsize=11,
    )


def draw_extrapolated(axis, fitted, future):
    """Efficiency over the workers, as far as the assumptions go."""
    workers = np.unique(np.geomspace(1, future.most, 200).round().astype(int))
    for name, color in zip(future.rates, (VERMILLION, BLUE)):
        rate = bytes_a_second(name)
        for what, style, options in (
            ("cables alone, overlapped", "-.", {}),
            ("ring, overlapped", ":", {"fitted": fitted, "is_ring": True}),
            ("a server a host, overlapped", "-", {"fitted": fitted}),
            ("a server a host, in turn", "--", {"fitted": fitted, "overlap": False}),
        ):
            label = f"{name.replace('gbit', ' Gbit/s')}: {what}"
            shares = [100 * future.efficiency(w, rate, **options) for w in workers]
            axis.plot(workers, shares, color=color, linestyle=style, linewidth=1.8, label=label)
    axis.set_xscale("log", base=2)
    ticks = [2**i for i in range(int(np.log2(future.most)) + 1)]
    axis.set_xticks(ticks, [str(tick) for tick in ticks])
    axis.set_ylim(0, 105)
    axis.set_xlabel("hosts")
    axis.set_ylabel("time of computing / time of a step, %")
    axis.set_title(
        f"Extrapolated, not measured: {future.size / 1e6:g} MB in {future.buckets} buckets,\n"
        f"{future.forward + future.backward:g} s of computing a step, "
        f"{future.latency * 1e6:g} µs a message",
        fontsize=11,
    )


def tell(measured):
    """Print what RESULTS.md is made of."""
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
    parser.add_argument("--rounds", type=int, default=1, help="each runs every job twice")
    parser.add_argument("--workers", type=int, nargs="+", metavar="W", help="numbers of workers")
    parser.add_argument("--rate", default="200mbit", help="of each cable, as tc has it")
    parser.add_argument("--buckets", type=int, default=4)
    parser.add_argument(
        "--elements", type=int, default=1_000_000, help="of a bucket; fewer lie on one server"
    )
    parser.add_argument("--forward", type=float, default=0.2, help="seconds")
    parser.add_argument("--backward", type=float, default=0.4, help="seconds")
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--name", default="growth", help="of the cluster, which must not be in use")
    parser.add_argument("--output", type=Path, default=RESULTS, help="folder")
    options = parser.parse_args()
    options.workers = options.workers or ((1, 2, 4) if options.quick else WORKERS)
    hosts.NAME = options.name  # bench.py may have its own up
    table = options.output / "growth.csv"
    try:
        if not options.draw:
            measure(options, table)
        measured = Measured(read(table))
    except Failed as error:
        sys.exit(f"growth.py: {error}")
    if len(measured.workers) > 1:  # one point makes no line
        tell(measured)
        draw(measured, options.output / "growth.svg")


if __name__ == "__main__":
    main()
