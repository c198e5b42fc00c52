"""The oldest and the newest Python train too; `make test-pythons` tries all in between."""

import re

import pytest
import smoke_pythons

TIME_BUDGET_S = 120  # two environments to install


@pytest.mark.may_skip("CI machines need not have every Python")
@pytest.mark.parametrize("version", ["3.8", "3.12"])
def test_two_workers_train_alike_on_another_python(version):
    python = smoke_pythons.find_python(version)
    if python is None:
        pytest.skip(f"Python {version} is not here")
    accuracies = re.findall(r"Test_acc ([\d.]+)", smoke_pythons.smoke(version, python))
    assert len(accuracies) == 2
    assert accuracies[0] == accuracies[1]
