"""Change one thing in the code, and see whether a test falls: `python tests/mutants.py --seed 1`.

A mutant that no test notices shows what is not tested. They are drawn before anyone looks: a file
by its number of lines, a kind of change, a place. Each is tried in a clone in build/mutants, by the
tests of its room, then by all quick ones, then by the long ones of its room; the first that falls
ends it. Forty take hours. What was found is kept there, and a second run goes on behind it.
"""

import argparse
import ast
import copy
import json
import os
import pathlib
import random
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDER = ROOT / "build" / "mutants"
ROOMS = {  # where code is, and where its tests are; {} is the name of the folder below
    "cifar10_dist/gluon_dist/startup": "tests/setup",
    "cifar10_dist/gluon_dist": "tests/{}",
    "cifar10_dist": "tests/{}",
    "tools/gluon_launch": "tests/launcher",
    "tools": "tests/tools",
}
COMPARISONS = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
ARITHMETIC = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
}
STAGE_S = 3600
# A mutant of what ends processes may end any: as root on Linux it sees only those of its tests.
ALONE = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "bash", "-c")
ALONE += ('"$@"; exit $?', "-")  # bash as the first process, which takes in what is left behind


def comparison(node):
    if isinstance(node, ast.Compare):
        node.ops[0] = COMPARISONS[type(node.ops[0])]()
        return node
    return None


def arithmetic(node):
    if isinstance(node, ast.BinOp) and type(node.op) in ARITHMETIC:
        node.op = ARITHMETIC[type(node.op)]()
        return node
    return None


def constant(node):
    if isinstance(node, ast.Constant) and isinstance(node.value, (bool, int, float)):
        node.value = not node.value if isinstance(node.value, bool) else node.value + 1
        return node
    return None


def removed_statement(node):
    is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    if isinstance(node, (ast.Expr, ast.AugAssign, ast.Raise, ast.Return)) and not is_text:
        return ast.Pass()
    return None


def swapped_arguments(node):
    if isinstance(node, ast.Call) and len(node.args) > 1:
        node.args[:2] = node.args[1], node.args[0]
        return node
    return None


KINDS = comparison, arithmetic, constant, removed_statement, swapped_arguments


def files():
    """Return the files that are mutated, each with its number of lines."""
    found = [path for room in ("cifar10_dist", "tools") for path in (ROOT / room).rglob("*.py")]
    return {path.relative_to(ROOT): len(path.read_text().splitlines()) for path in sorted(found)}


def mutants_of(source, kind):
    """Return all places for a kind of change: (line, before, after, the changed source)."""
    lines = source.splitlines(keepends=True)
    found = []
    for node in ast.walk(ast.parse(source)):
        changed = kind(copy.deepcopy(node)) if hasattr(node, "lineno") else None
        if changed is None:
            continue
        # Columns are counted in bytes.
        start = sum(map(len, lines[: node.lineno - 1]))
        start += len(lines[node.lineno - 1].encode()[: node.col_offset].decode())
        before, after = ast.get_source_segment(source, node), ast.unparse(changed)
        if isinstance(node, ast.expr):
            after = f"({after})"
        new = source[:start] + after + source[start + len(before) :]
        try:
            if ast.dump(ast.parse(new)) != ast.dump(ast.parse(source)):
                found.append((node.lineno, before, after, new))
        except SyntaxError:  # within an f-string, Python tells no places
            continue
    return found


def draw(count, seed):
    """Draw mutants: dicts with `file`, `kind`, `line`, `before`, `after` and the new `source`."""
    draws, drawn = random.Random(seed), []
    lines = files()
    while len(drawn) < count:
        (path,) = draws.choices(list(lines), lines.values())
        kind = draws.choice(KINDS)
        places = mutants_of((ROOT / path).read_text(), kind)
        if places:
            line, before, after, source = draws.choice(places)
            found = {"file": str(path), "kind": kind.__name__, "line": line}
            drawn.append({**found, "before": before, "after": after, "source": source})
    return drawn


def tests_of(path):
    """Return the folder of the tests of a file."""
    for code, tests in ROOMS.items():
        if path.startswith(f"{code}/"):
            room = path[len(code) + 1 :].partition("/")[0]
            folder = tests.format(room)
            return folder if (ROOT / folder).is_dir() else "tests/lesson"
    raise ValueError(path)


def run_tests(project, *words):
    """Run tests until one fails; return its line, or None."""
    alone = ALONE if sys.platform == "linux" and os.geteuid() == 0 else ()
    try:
        done = subprocess.run(
            [*alone, ".venv/bin/python", "-m", "pytest", "-x", "-q", *words],
            cwd=project,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=STAGE_S,
        )
    except subprocess.TimeoutExpired:
        return f"no end after {STAGE_S} s"
    if done.returncode in (0, 5):  # 5: no test was chosen
        return None
    failed = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return (failed or done.stdout.splitlines()[-1:])[0]


def first_failure(project, *words):
    """Return the line of a test that fails, and fails again when it runs alone; else None."""
    left_out = []
    while True:
        failure = run_tests(project, "--dist", "loadgroup", "-n", "2", *words, *left_out)
        named = re.match(r"(?:FAILED|ERROR) (\S+::.*?)(@\S.*?)?( - .*)?$", failure or "")
        if not named or run_tests(project, "-n", "0", "-m", "long or not long", named[1]):
            return failure
        left_out.append(f"--deselect={named[1]}")  # a busy machine, say


def judge(project, mutant):
    """Return the stage whose tests noticed a mutant, and the test that fell; None and None."""
    path = project / mutant["file"]
    original = path.read_text()
    room = tests_of(mutant["file"])
    stages = {
        "room": (room, "-m", "not long"),
        "make test": ("-m", "not long"),
        "long": (room, "-m", "long"),
    }
    path.write_text(mutant["source"])
    try:
        for stage, words in stages.items():
            failure = first_failure(project, *words)
            if failure:
                return stage, failure
        return None, None
    finally:
        path.write_text(original)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition(":")[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--list", action="store_true", help="show them, and try none")
    args = parser.parse_args()
    mutants = draw(args.count, args.seed)
    project, record = FOLDER / "project", FOLDER / f"seed-{args.seed}.jsonl"
    lines = record.read_text().splitlines() if record.exists() else []
    known = {number: found for number, *found in map(json.loads, lines)}
    if not args.list and not project.exists():
        subprocess.run(["git", "clone", "--quiet", ROOT, project], check=True)
        subprocess.run(["make", "setup", "DEVICE=cpu", "HOROVOD=1"], cwd=project, check=True)
    survivors = 0
    for number, mutant in enumerate(mutants):
        name = "{file}:{line} {kind}: {before!r:.60} -> {after!r:.60}".format(**mutant)
        if args.list:
            print(name)
            continue
        if number in known:
            stage, failure = known[number]
        else:
            stage, failure = judge(project, mutant)
            with record.open("a") as file:
                print(json.dumps([number, stage, failure]), file=file)
        survivors += stage is None
        print(f"{number:3} {stage or 'SURVIVED':10} {name}  {failure or ''}", flush=True)
    if not args.list:
        print(f"{survivors} of {len(mutants)} survived")
    return int(survivors > 0)


if __name__ == "__main__":
    sys.exit(main())
