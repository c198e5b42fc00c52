"""What workers compare before they train: options, libraries, and the program itself."""

import runpy
import shutil
from pathlib import Path

import mxnet as mx
import pytest

from launching import ROOT
from process import versions
from process.flags import parse_args

TIME_BUDGET_S = 10
PROGRAM = ROOT / "cifar10_dist"
FILE = Path(versions.__file__).relative_to(PROGRAM)


def differences(one, other):
    """The names of the facts in which two workers with these command lines differ."""
    ours, theirs = (versions.describe(parse_args(words.split())) for words in (one, other))
    assert ours.keys() == theirs.keys() and ours["MXNet"] == mx.__version__
    return {name for name in ours if ours[name] != theirs[name]}


@pytest.mark.parametrize(
    "one, other, different",
    [
        ("", "", set()),
        ("--lr 0.1", "--lr 0.2 --batch-size 7", {"--lr", "--batch-size"}),
        ("--data-dir a --disp-batches 3", "--cpus 1 --log-dir b", set()),
        ("--model-prefix a/m", "--model-prefix b/m --keep 2", set()),
        ("--model-prefix a/m", "", {"--model-prefix"}),
        ("--resume a-0001", "--resume b-0001", set()),
        ("--model-prefix m --resume auto", "--model-prefix m --resume a", {"--resume"}),
    ],
)
def test_only_options_that_change_the_training_are_compared(one, other, different):
    assert differences(one, other) == different


def program_of(folder):
    """The version of a copy of the program."""
    return runpy.run_path(str(folder / FILE))["versions"]()["program"]


@pytest.mark.parametrize(
    "change, is_seen",
    [
        (lambda folder: (folder / "workers.py").write_text("# shorter\n"), True),
        (lambda folder: (folder / "workers.py").rename(folder / "others.py"), True),
        (lambda folder: (folder / "saving" / "new.py").touch(), True),
        (lambda folder: (folder / "notes.txt").touch(), False),
        (lambda folder: None, False),
    ],
    ids=["content", "name", "new file", "no Python", "none"],
)
def test_a_copy_of_the_program_with_another_file_is_another_version(tmp_path, change, is_seen):
    copy = shutil.copytree(PROGRAM, tmp_path / "copy")
    change(copy)
    assert (program_of(copy) != versions.versions()["program"]) == is_seen
