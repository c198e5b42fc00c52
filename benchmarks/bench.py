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
import sys
from pathlib import Path

from comparison import ratio
from contenders import Failed
from groups import GROUPS
from report import keep, keep_only, positive, write

ROUNDS = "each runs every program twice; a third of them for what takes long, published once each"


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", action="append", choices=GROUPS, metavar="GROUP")
    parser.add_argument("--rounds", type=positive, default=3, help=ROUNDS)
    parser.add_argument("--quick", action="store_true", help="two groups, few steps, one round")
    parser.add_argument("--data", help="folder of cifar10_train.rec and cifar10_val.rec")
    parser.add_argument("--list", action="store_true", help="list the groups")
    options = parser.parse_args()
    if options.list:
        for name, measure in GROUPS.items():
            print(f"{name:14} {measure.__doc__.splitlines()[0]}")
        return
    if options.quick:
        options.rounds, options.only = 1, options.only or ["one-process", "start"]
    if options.data:
        options.data = str(Path(options.data).resolve())
    failures = 0
    for name in options.only or GROUPS:
        print(f"--- {name}", flush=True)
        titles = []
        try:
            for found, row in GROUPS[name](options):
                a, b = (figures(found, name, row.figure) for name in (row.a, row.b))
                check_sizes(found, row)
                keep(name, found, row, ratio(a, b))
                print(f"{row.title}: {ratio(a, b)}", flush=True)
                titles.append(row.title)
            keep_only(name, titles)
        except Failed as error:  # the other groups are worth measuring all the same
            print(f"bench.py: {name}: {error}", file=sys.stderr)
            failures += 1
        write()
    sys.exit(1 if failures else 0)


def figures(found, name, figure):
    """Return a program's figure of each run."""
    if any(figure not in run for run in found[name]):
        raise Failed(f"{name} printed nothing to take {figure} from")
    return [run[figure] for run in found[name]]


def check_sizes(found, row):
    """See that the compared networks have the same number of parameters."""
    sizes = {f["parameters"] for name in (row.a, row.b) for f in found[name] if "parameters" in f}
    if len(sizes) > 1:
        raise Failed(f"{row.title}: networks of different sizes: {sizes}")


if __name__ == "__main__":
    main()
