#!/usr/bin/env python3
"""Measure this project beside its peers, and write down what came out.

    python benchmarks/bench.py                      everything but what needs real images
    python benchmarks/bench.py --data DIR           that too (DIR/cifar10_train.rec, …_val.rec)
    python benchmarks/bench.py --only workers-32    one group again; --list tells their names

After each group it writes benchmarks/results/runs.csv (a line for each figure of each run),
ratios.csv, and from these the tables of RESULTS.md and benchmarks/rows.md. PyTorch runs from
.venv-peers, which `make bench` builds.
"""

import argparse
import sys
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import between_hosts
import groups
from comparison import ROUNDS, take_turns
from contenders import HAS_HOROVOD, PEERS_PYTHON, ROOT
from report import add, refresh
from tables import RESULTS, where

GROUPS = {**groups.GROUPS, **between_hosts.GROUPS}
DATA = ("cifar10_train.rec", "cifar10_val.rec")
QUICK = ("one-process", "start")


def parse_args():
    """Return the options; end on a mistake."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", action="append", metavar="GROUP")
    parser.add_argument(
        "--quick", action="store_true", help="see that it works: short runs, kept in build/bench"
    )
    parser.add_argument("--data", help=f"folder of {' and '.join(DATA)}")
    parser.add_argument("--output", type=Path, help="folder of the results")
    parser.add_argument("--list", action="store_true", help="list what would be measured, and end")
    options = parser.parse_args()
    for name in DATA if options.data else ():
        if not Path(options.data, name).is_file():
            fail(f"--data {options.data}: has no {name}")
    for name in options.only or ():
        if name not in GROUPS:
            fail(f"--only {name}: no such group; take one of {', '.join(GROUPS)}")
        if GROUPS[name].needs_data and not options.data:
            fail(f"--only {name}: needs --data, the folder of CIFAR-10's RecordIO files")
    return options


def fail(message):
    """End this program with a line and status 2."""
    print(f"bench.py: {message}", file=sys.stderr)
    sys.exit(2)


def chosen(options):
    """Return the names of the groups to measure."""
    usual = [name for name, group in GROUPS.items() if options.data or not group.needs_data]
    return options.only or (QUICK if options.quick else usual)


def minutes(names, rounds=ROUNDS):
    """Return how long groups take on two cores."""
    return sum(GROUPS[name].round_s for name in names) * rounds / 60


def measure(name, rounds, options):
    """Measure a group; return what its programs printed, and its rows."""
    group = GROUPS[name]
    data = options.data and str(Path(options.data).resolve())
    with ExitStack() as stack:
        group.setup(stack, options.quick, data)
        found = take_turns(group.turns, rounds, partial(print, flush=True))
    return found, list(group.rows(found))


def is_measured(name, rounds, options, folder):
    """Measure a group and write it down; False if one of its programs fails."""
    print(f"--- {name}", flush=True)
    try:
        found, rows = measure(name, rounds, options)
    except RuntimeError as error:  # the other groups are worth measuring all the same
        print(f"bench.py: {name}: {error}", file=sys.stderr)
        return False
    print(*add(folder, name, found, rows, where(PEERS_PYTHON)), sep="\n", flush=True)
    refresh(folder)
    return True


def main():
    """Measure what the command line says."""
    options = parse_args()
    names, rounds = chosen(options), 1 if options.quick else ROUNDS
    about = f"{rounds} rounds, on two cores about {minutes(names, rounds):.0f} minutes"
    print(f"{len(names)} groups, {about}", flush=True)
    if options.list:
        for name in names:
            print(f"{name:14} {minutes([name], rounds):3.0f} min  {GROUPS[name]}")
        return
    if not HAS_HOROVOD:
        print("left out: Horovod, which needs `make setup HOROVOD=1`", flush=True)
    folder = options.output or (ROOT / "build" / "bench" if options.quick else RESULTS)
    try:
        failed = [name for name in names if not is_measured(name, rounds, options, folder)]
    except KeyboardInterrupt:
        sys.exit("bench.py: stopped; the groups above are written")
    sys.exit(f"bench.py: failed: {' '.join(failed)}" if failed else 0)


if __name__ == "__main__":
    main()
