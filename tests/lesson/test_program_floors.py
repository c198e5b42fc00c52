"""The lesson stands on the rooms and the package: imports of the program go down only."""

from floors import arrows, faults
from launching import ROOT

TIME_BUDGET_S = 5
PROGRAM = ROOT / "cifar10_dist"
PACKAGE = PROGRAM / "gluon_dist"
FLOORS = [
    ("cifar10_dist", "training", "loader", "sampler"),
    ("run",),
    ("command_line", "networks", "sources"),
    ("gluon_dist",),
]
PACKAGE_FLOORS = [
    ("checkpoint", "startup"),
    ("exchange",),
    ("workers",),
    ("common", "setup"),
    ("contract",),
]


def test_every_import_of_the_program_goes_down():
    assert arrows(PROGRAM)
    assert faults(PROGRAM, FLOORS) == []


def test_every_import_of_the_package_goes_down():
    assert arrows(PACKAGE)
    assert faults(PACKAGE, PACKAGE_FLOORS) == []


def test_rooms_of_one_floor_know_nothing_of_each_other():
    for root, rooms in ((PROGRAM, FLOORS[2]), (PACKAGE, PACKAGE_FLOORS[3])):
        assert not [pair for pair in arrows(root) if set(pair) <= set(rooms)]
