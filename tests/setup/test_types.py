"""What a type checker knows of the door: right calls pass `mypy --strict`, wrong ones do not."""

import inspect
import os
import re
import subprocess
import sys

import gluon_dist

import pytest

from launching import PROGRAMS, ROOT

TIME_BUDGET_S = 30
RIGHT, WRONG = PROGRAMS / "typed_program.py", PROGRAMS / "typed_mistakes.py"
# What stands in a user's settings; gluon_dist's own lines are not checked, as if it were installed.
SETTINGS = """
[mypy]
strict = true
follow_imports = silent
[mypy-mxnet.*]
ignore_missing_imports = true
"""


@pytest.fixture(scope="module")
def refused(tmp_path_factory):
    """The lines of both programs that mypy refuses, and what it says."""
    folder = tmp_path_factory.mktemp("types")
    (folder / "mypy.ini").write_text(SETTINGS)
    words = ["--config-file", "mypy.ini", "--no-color-output", RIGHT, WRONG]
    env = {**os.environ, "MYPYPATH": str(ROOT / "cifar10_dist")}
    program = [sys.executable, "-m", "mypy", *map(str, words)]
    ran = subprocess.run(program, cwd=folder, env=env, capture_output=True, text=True, timeout=240)
    assert ran.returncode == 1 and not ran.stderr, ran.stdout + ran.stderr
    found = re.findall(r"(\w+\.py):(\d+): error: (.*)", ran.stdout)
    return {(name, int(line)): words for name, line, words in found}


def test_a_program_with_the_whole_door_passes(refused):
    names = re.findall(r"\bgd\.(\w+)", RIGHT.read_text())
    assert set(names) == set(gluon_dist.__all__)
    assert {place: words for place, words in refused.items() if place[0] == RIGHT.name} == {}


def test_wrong_calls_are_refused(refused):
    lines = enumerate(WRONG.read_text().splitlines(), 1)
    wrong = {number for number, line in lines if line.endswith("# refused")}
    assert len(wrong) > 20
    assert {line for name, line in refused if name == WRONG.name} == wrong


def test_every_public_function_has_types():
    """Mypy does not ask for them: the private ones of these modules may have none."""
    values = [getattr(gluon_dist, name) for name in gluon_dist._HOMES]
    for kind in [value for value in values if inspect.isclass(value)]:
        methods = vars(kind).items()
        values += [v for k, v in methods if inspect.isfunction(v) and not k.startswith("_")]
        values.append(kind.__init__)
    untyped = []
    for function in filter(inspect.isfunction, values):
        signature = inspect.signature(function)
        kinds = [p.annotation for p in signature.parameters.values() if p.name != "self"]
        if inspect.Signature.empty in [*kinds, signature.return_annotation]:
            untyped.append(function.__qualname__)
    assert len(values) > 30 and not untyped


def test_who_reads_types_sees_every_name_of_the_door():
    """A type checker cannot follow names that are loaded when they are first asked for."""
    text = (ROOT / "cifar10_dist/gluon_dist/__init__.py").read_text()
    block = re.findall(r"^    from gluon_dist\.([\w.]+) import (\w+) as \2$", text, re.MULTILINE)
    assert sorted(block) == sorted((home, name) for name, home in gluon_dist._HOMES.items())


def test_mypy_looks_at_every_module_that_has_a_public_name():
    text = (ROOT / "pyproject.toml").read_text()
    files = re.findall(r'"cifar10_dist/gluon_dist/(.*)\.py"', text.partition("[tool.mypy]")[2])
    assert {home.replace(".", "/") for home in gluon_dist._HOMES.values()} <= set(files)
