"""The oldest and the newest Python train too; `make test-pythons` tries all in between."""

import re

import pytest

import smoke_pythons

TIME_BUDGET_S = 160  # two environments to install
pytestmark = pytest.mark.long
may_skip = pytest.mark.may_skip("CI machines need not have every Python")


def find(version):
    python = smoke_pythons.find_python(version)
    if python is None:
        pytest.skip(f"Python {version} is not here")
    return version, python


@may_skip
@pytest.mark.parametrize("version", ["3.8", "3.12"])
def test_two_workers_train_alike_on_another_python(version):
    accuracies = re.findall(r"Test_acc ([\d.]+)", smoke_pythons.smoke(*find(version)))
    assert len(accuracies) == 2
    assert accuracies[0] == accuracies[1]


@may_skip
@pytest.mark.parametrize("version", ["3.8", "3.12"])
def test_two_workers_run_where_the_project_is_installed(version):
    said = smoke_pythons.smoke_installed(*find(version))
    assert said.count(" of 2, sum 3.0\n") == 2


@may_skip
def test_a_checkpoint_of_the_oldest_python_and_two_workers_goes_on_with_the_newest_and_one(
    tmp_path,
):
    oldest, newest = find("3.8"), find("3.12")
    common = f"--model-prefix {tmp_path}/model --num-examples 160"
    smoke_pythons.smoke(*oldest, common)
    more = f"{common} --num-epochs 2 --batch-size 32 --resume auto"
    said = smoke_pythons.smoke(*newest, more, workers=1)
    assert f"Resumed from {tmp_path}/model-0001: 1 epoch done" in said
    assert "Epoch 1: Test_acc" in said
