#!/usr/bin/env python3
"""Measure this project beside its peers, and write down what came out.

    python benchmarks/bench.py                      everything but what needs real images
    python benchmarks/bench.py --data DIR           that too (DIR/cifar10_train.rec, …_val.rec)
    python benchmarks/bench.py --only workers-32    one group again; --list tells their names

Stopped, the same command goes on where it was, unless the measured files or the machine have
changed since. Programs take turns, round by round, as long as the interval of a row holds its aim,
up to a limit.

Writes benchmarks/results/runs.csv (a line for each run of each program) and ratios.csv, of which it
draws benchmarks/results/ratios.svg and fills the table in RESULTS.md. PyTorch runs from
.venv-peers, which `make bench` builds.
"""

import argparse
import sys
import time
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from comparison import ratio, take_turns, verdict
from contenders import Failed
from groups import GROUPS
from kept import Kept
from load import NOTICED, busy_processes, load
from measured import LIST, ROOT, measured_files, where
from report import RESULTS, Tables, positive

OPTIONS = ("only", "rounds", "quick", "data", "output")  # others' runs are not gone on with
DATA = ("cifar10_train.rec", "cifar10_val.rec")


def parse_args():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", action="append", metavar="GROUP")
    parser.add_argument("--rounds", type=positive, help="at most, of every group")
    parser.add_argument("--quick", action="store_true", help="two groups, few steps, one round")
    parser.add_argument("--data", help=f"folder of {' and '.join(DATA)}")
    parser.add_argument("--output", type=Path, default=RESULTS, help="folder of the results")
    parser.add_argument("--list", action="store_true", help="list the groups")
    parser.add_argument("--plan", action="store_true", help="tell what would be measured, and end")
    return parser.parse_args()


def plan(options):
    """Return the groups to measure, each with its fewest and most rounds; exit on a mistake."""
    unknown = [name for name in options.only or () if name not in GROUPS]
    missing = [name for name in DATA if options.data and not Path(options.data, name).is_file()]
    if unknown:
        fail(f"--only {unknown[0]}: no such group; take one of {', '.join(GROUPS)}")
    if missing:
        fail(f"--data {options.data}: has no {missing[0]}")
    for name in options.only or ():
        if GROUPS[name].needs_data and not options.data:
            fail(f"--only {name}: needs --data, the folder of CIFAR-10's RecordIO files")
    if options.quick:
        options.rounds, options.only = 1, options.only or ["one-process", "start"]
    if options.data:
        options.data = str(Path(options.data).resolve())
    names = options.only or [
        name
        for name, group in GROUPS.items()
        if not group.by_name and (options.data or not group.needs_data)
    ]
    limit = options.rounds or sys.maxsize
    return {name: [min(n, limit) for n in GROUPS[name].rounds] for name in names}


def fail(message):
    print(f"bench.py: {message}", file=sys.stderr)
    sys.exit(2)


def minutes(rounds):
    """Return how long groups take at most, by the plan."""
    return sum(GROUPS[name].round_s * most for name, (_, most) in rounds.items()) / 60


def tell(rounds, is_resumed):
    """Tell what is measured, how long it takes, and what disturbs it."""
    if is_resumed:
        print("going on with a measurement that was stopped")
    print(f"{len(rounds)} groups, on two cores at most {minutes(rounds):.0f} minutes", flush=True)
    for name in rounds:
        if GROUPS[name].needs_data:
            least = minutes({name: rounds[name]})
            print(f"{least:.0f} of them for {name}, which trains on real images", flush=True)
    busy = load(1.0)
    if busy >= NOTICED:
        print(f"{busy:.2f} processors are busy already; rows will be marked as under load:")
        print(*busy_processes(), sep="\n", flush=True)


class Progress:
    """How much is left: by the plan, and by how long it took so far beside the plan.

    Parameters
    ----------
    left : dict
        name: fewest and most rounds.
    """

    def __init__(self, left):
        self._left, self._spent_s, self._planned_s = dict(left), 0.0, 0.0

    def run_done(self, seconds):
        self._spent_s += seconds

    def round_done(self, name, count):
        """Tell how long it still takes."""
        self._planned_s += GROUPS[name].round_s
        most = self._left[name][1]
        rest = {**self._left, name: (0, most - count)}
        left = self._spent_s / self._planned_s * minutes(rest)
        print(f"round {count} of at most {most}; at most {left:.0f} minutes left", flush=True)

    def group_done(self, name):
        del self._left[name]


def measure(name, rounds, options, kept, progress, tables):
    """Measure a group, and keep its rows."""

    def take(program, act):
        def act_beside_load():
            before, start = load(), time.monotonic()
            figures = act()
            return {"seconds": time.monotonic() - start, **figures, "load": before}

        figures = kept.take(name, program, act_beside_load)
        progress.run_done(figures["seconds"])
        return figures

    def results(found):
        for row in rows(found):
            a, b = (figures(found, program, row.figure) for program in (row.a, row.b))
            check_sizes(found, row)
            value = ratio(a, b)
            yield row, value, verdict(value, row.aim, row.is_upper_limit, row.edge)

    def is_enough(found, count):
        progress.round_done(name, count)
        fewest, _ = rounds
        return count >= fewest and all(v != "undecided" for _, _, v in results(found))

    with ExitStack() as options.stack:
        turns, rows = GROUPS[name].prepare(options)
        found = take_turns(turns, rounds[1], partial(print, flush=True), take, is_enough)
    every = list(results(found))
    tables.keep_runs(name, found)
    for row, value, decided in every:
        tables.keep(name, found, row, value)
        print(f"{row.title}: {value} {decided}".rstrip(), flush=True)
    tables.keep_only(name, [row.title for row, _, _ in every])
    tables.write()


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


def main():
    options = parse_args()
    if options.list:
        for name, group in GROUPS.items():
            print(f"{name:14} {group.prepare.__doc__.splitlines()[0]}")
        return
    rounds = plan(options)
    machine = {**where(), "commit": None}  # the files count
    kept = Kept([measured_files(), machine, {k: str(vars(options)[k]) for k in OPTIONS}])
    left = {name: of for name, of in rounds.items() if name not in kept.finished}
    tell(left, is_resumed=bool(kept.finished or kept.runs))
    if options.plan:
        return
    is_kept = options.output.resolve() == RESULTS
    page = (ROOT if is_kept else options.output) / "RESULTS.md"
    tables, progress, failures = Tables(options.output, page), Progress(left), 0
    for name in left:
        print(f"--- {name}", flush=True)
        try:
            measure(name, left[name], options, kept, progress, tables)
            kept.finish(name)
        except Failed as error:  # the other groups are worth measuring all the same
            print(f"bench.py: {name}: {error}", file=sys.stderr)
            failures += 1
        except KeyboardInterrupt:
            sys.exit("bench.py: stopped; the same command goes on")
        progress.group_done(name)
    if failures:
        sys.exit(1)
    kept.forget()
    if is_kept and not options.only:
        LIST.write_text("".join(f"{line}\n" for line in measured_files()))


if __name__ == "__main__":
    main()
