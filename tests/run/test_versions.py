"""What workers compare before they train: libraries, and the program itself."""

import runpy
import shutil
from pathlib import Path

import mxnet as mx
import pytest

from launching import ROOT
from run import versions

TIME_BUDGET_S = 10
PROGRAM = ROOT / "cifar10_dist"
FILE = Path(versions.__file__).relative_to(PROGRAM)


def test_the_libraries_that_compute_are_compared_too():
    found = versions.versions()
    assert found["MXNet"] == mx.__version__ and set(found) == {"program", "MXNet", "GluonCV"}
    assert set(versions.all_versions()) == {*found, "Python", "NumPy"}


def program_of(folder):
    """The version of a copy of the program."""
    return runpy.run_path(str(folder / FILE))["versions"]()["program"]


@pytest.mark.parametrize(
    "change, is_seen",
    [
        (lambda folder: (folder / "loader.py").write_text("# shorter\n"), True),
        (lambda folder: (folder / "loader.py").rename(folder / "others.py"), True),
        (lambda folder: (folder / "gluon_dist" / "new.py").touch(), True),
        (lambda folder: (folder / "notes.txt").touch(), False),
        (lambda folder: None, False),
    ],
    ids=["content", "name", "new file", "no Python", "none"],
)
def test_a_copy_of_the_program_with_another_file_is_another_version(tmp_path, change, is_seen):
    copy = shutil.copytree(PROGRAM, tmp_path / "copy", ignore=shutil.ignore_patterns("__pycache__"))
    change(copy)
    assert (program_of(copy) != versions.versions()["program"]) == is_seen
