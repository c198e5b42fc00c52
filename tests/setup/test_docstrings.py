"""The docstrings of the door: what each name takes, and examples that are run."""

import inspect
import os
import subprocess
import sys

import gluon_dist as gd

import pytest

from launching import PROGRAMS, ROOT

TIME_BUDGET_S = 15
NAMES = [name for name in gd.__all__ if name != "__version__"]
KINDS = (gd.Trainer, gd.DataLoader, gd.Checkpoint, gd.Batch)
METHODS = [
    pytest.param(value, id=f"{kind.__name__}.{name}")
    for kind in KINDS
    for name, value in vars(kind).items()
    if inspect.isfunction(value) and not name.startswith("_")
]


def arguments(function):
    """The names of the arguments of a function, or of a class."""
    called = function.__init__ if inspect.isclass(function) else function
    return [name for name in inspect.signature(called).parameters if name != "self"]


def section(doc, title):
    """The lines below a title, up to the next one."""
    _, _, rest = doc.partition(f"\n{title}\n{'-' * len(title)}\n")
    lines = rest.splitlines()
    ends = [i for i, line in enumerate(lines) if line and set(line) == {"-"}]
    return lines[: ends[0] - 1] if ends else lines


def described(doc):
    """The names of the arguments that a docstring describes."""
    heads = [line for line in section(doc, "Parameters") if line and not line.startswith(" ")]
    return [name.strip(" *") for head in heads for name in head.split(" : ")[0].split(",")]


@pytest.fixture(scope="module")
def examples():
    """How many examples each name has, all of them run by one process without a launcher."""
    program = [sys.executable, PROGRAMS / "run_docstrings.py"]
    env = {**os.environ, "PYTHONPATH": str(ROOT / "cifar10_dist")}
    ran = subprocess.run(program, env=env, capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return dict(line.split() for line in ran.stdout.splitlines())


def test_every_name_has_examples_and_they_are_right(examples):
    assert sorted(examples) == sorted(NAMES) and "0" not in examples.values()


@pytest.mark.parametrize("name", NAMES)
def test_every_argument_of_a_name_is_described(name):
    value = getattr(gd, name)
    assert described(inspect.getdoc(value)) == arguments(value)


@pytest.mark.parametrize("method", METHODS)
def test_every_argument_of_a_method_is_described(method):
    assert described(inspect.getdoc(method)) == arguments(method)


@pytest.mark.parametrize("name", NAMES)
def test_a_docstring_begins_with_one_line_and_ends_with_its_examples(name):
    first, second, *rest = inspect.getdoc(getattr(gd, name)).splitlines()
    assert first.endswith(".") and second == ""
    assert [rest[i - 1] for i, line in enumerate(rest) if line.startswith("----")][-1] == "Examples"
