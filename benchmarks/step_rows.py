#!/usr/bin/env python3
"""Measure steps with few servers, two-bit pushes and a slow worker, for step_model.py.

    sudo python benchmarks/step_rows.py

The same hosts and sleeping workers as growth.py's, which has the other rows. Writes steps.csv.
"""

import csv
import datetime
from argparse import Namespace
from functools import partial

from comparison import take_turns
from growth import GIVEN, run_job
from hosts import cluster
from measured import where
from report import RESULTS

SAME = Namespace(rate="200mbit", elements=1_000_000, buckets=4, forward=0.2, backward=0.4, steps=8)
JOBS = [  # workers, servers, overlap, two bits, slow
    (workers, servers, overlap, two_bits, slow)
    for workers, servers, two_bits, slow in (
        (4, 4, 0, 1.0),
        (4, 2, 0, 1.0),
        (4, 4, 1, 1.0),
        (4, 4, 0, 2.0),
    )
    for overlap in (0, 1)
]
COLUMNS = ("workers", "servers", "overlap", "two_bits", "slow")


def flags(job):
    return "--two-bits", str(job[3]), "--slow", str(job[4])


def main():
    """Measure every job twice, and write a row for each run."""
    with cluster(4, SAME.rate, "step-rows") as hosts:
        runs = {str(job): partial(run_job, hosts, *job[:3], SAME, *flags(job)) for job in JOBS}
        found = take_turns(runs, 1, partial(print, flush=True))
    common = {name: getattr(SAME, name) for name in GIVEN}
    common["date"] = datetime.date.today().isoformat()
    common.update((name, where()[name]) for name in ("machine", "python"))
    rows = [
        {**dict(zip(COLUMNS, job)), "step_s": figures["step_s"], "busy": figures["busy"], **common}
        for job, all_figures in zip(JOBS, found.values())
        for figures in all_figures
    ]
    with open(RESULTS / "steps.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
