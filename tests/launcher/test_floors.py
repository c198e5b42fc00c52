"""The launcher's rooms: imports go down only."""

import pytest

from floors import arrows, faults
from launching import ROOT

TIME_BUDGET_S = 5
LAUNCHER = ROOT / "tools" / "gluon_launch"
WAYS = ("starting", "telling")
FLOORS = [("__main__",), ("main",), ("options",), ("watching",), WAYS, ("job", "remote")]


def test_every_import_of_the_launcher_goes_down():
    assert arrows(LAUNCHER)
    assert faults(LAUNCHER, FLOORS) == []


@pytest.fixture
def house(tmp_path):
    """A program with a roof and a ground, and a function that writes a line into a room."""

    def write(room, line):
        (tmp_path / room).mkdir(exist_ok=True)
        (tmp_path / room / "module.py").write_text(line + "\n")
        return faults(tmp_path, [("roof",), ("ground",)])

    write("ground", "import os")
    write("roof", "from ground import module")
    return write


def test_an_import_down_is_no_fault(house):
    assert house("roof", "from ground.module import os") == []


def test_an_import_upward_is_a_fault(house):
    house("roof", "import os")
    wrong = house("ground", "import os\nimport roof.module")
    assert wrong == ["ground/module.py:2: ground imports roof, which is above it"]


def test_two_rooms_that_import_each_other_are_a_fault(house):
    assert "ground and roof import each other" in house("ground", "from roof import module")


def test_a_room_on_no_floor_is_a_fault(house):
    assert house("cellar", "import os") == ["on no floor: cellar"]


def test_the_packages_own_name_may_stand_before_the_room(house, tmp_path):
    (tmp_path / "__init__.py").touch()
    house("roof", "import os")
    (wrong,) = house("ground", f"from {tmp_path.name}.roof import module")
    assert wrong == "ground/module.py:1: ground imports roof, which is above it"
