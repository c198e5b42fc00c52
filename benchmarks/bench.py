#!/usr/bin/env python3
"""Measure this project beside its peers, and write the results.

    python benchmarks/bench.py                      everything but what needs real images
    python benchmarks/bench.py --data DIR           that too (DIR/cifar10_train.rec, …_val.rec)
    python benchmarks/bench.py --only workers-32    one group again; --list prints their names

Writes benchmarks/results/runs.csv (a line for each figure of each run) and ratios.csv, of which it
draws benchmarks/results/ratios.svg and fills the table in RESULTS.md. It does so after each group:
a measurement that is stopped keeps its finished groups. PyTorch runs from .venv-peers, which
`make bench` builds.
"""

import argparse
import sys
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import between_hosts
import groups
from comparison import take_turns
from contenders import HAS_HOROVOD, ROOT
from report import RESULTS, Results, where

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
    print(f"bench.py: {message}", file=sys.stderr)
    sys.exit(2)


def chosen(options):
    """Return the groups to measure, each with its number of rounds."""
    usual = [name for name, group in GROUPS.items() if options.data or not group.needs_data]
    names = options.only or (QUICK if options.quick else usual)
    return {name: 1 if options.quick else GROUPS[name].rounds for name in names}


def minutes(rounds):
    """Return how long groups take on two cores."""
    return sum(GROUPS[name].round_s * count for name, count in rounds.items()) / 60


def measure(name, rounds, options):
    """Measure a group; return what its programs printed, and its rows."""
    group = GROUPS[name]
    data = options.data and str(Path(options.data).resolve())
    with ExitStack() as stack:
        group.setup(stack, options.quick, data)
        found = take_turns(group.turns, rounds, partial(print, flush=True))
    return found, list(group.rows(found))


def main():
    options = parse_args()
    rounds = chosen(options)
    print(f"{len(rounds)} groups, on two cores about {minutes(rounds):.0f} minutes", flush=True)
    if options.list:
        for name in rounds:
            print(f"{name:14} {minutes({name: rounds[name]}):3.0f} min  {GROUPS[name]}")
        return
    if not HAS_HOROVOD:
        print("left out: Horovod, which needs `make setup HOROVOD=1`", flush=True)
    folder = options.output or (ROOT / "build" / "bench" if options.quick else RESULTS)
    page = (ROOT if folder.resolve() == RESULTS else folder) / "RESULTS.md"
    results = Results.read(folder, page)
    left, failed = list(rounds), []
    try:
        for name in rounds:
            print(f"--- {name}", flush=True)
            try:
                found, rows = measure(name, rounds[name], options)
            except RuntimeError as error:  # the other groups are worth measuring all the same
                print(f"bench.py: {name}: {error}", file=sys.stderr)
                failed.append(name)
            else:
                results = results.with_group(name, found, rows, where())
                results.write(folder, page)
                print(*results.told(name), sep="\n", flush=True)
            left.remove(name)
    except KeyboardInterrupt:
        rest = " ".join(failed + left)
        sys.exit(f'bench.py: stopped; for the rest: make bench ONLY="{rest}"')
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
