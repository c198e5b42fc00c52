"""The lesson stands on the rooms, the rooms on the ground: imports of the program go down only."""

from floors import arrows, faults
from launching import ROOT

TIME_BUDGET_S = 5
PROGRAM = ROOT / "cifar10_dist"
FLOORS = [
    ("cifar10_dist", "mxnet_setup", "training", "loader", "sampler", "workers"),
    ("run",),
    ("saving",),
    ("command_line", "networks", "sources", "trainers"),
    ("ground",),
]


def test_every_import_of_the_program_goes_down():
    assert arrows(PROGRAM)
    assert faults(PROGRAM, FLOORS) == []


def test_rooms_of_one_floor_know_nothing_of_each_other():
    rooms = FLOORS[3]
    assert not [pair for pair in arrows(PROGRAM) if set(pair) <= set(rooms)]


def test_the_loop_calls_a_room_in_few_places():
    """Each room shows the lesson a function or two, or one object."""
    found = arrows(PROGRAM)
    uses = {room: len(found.get(("cifar10_dist", room), ())) for room in sum(FLOORS[1:], ())}
    assert uses.pop("run") <= 5 and max(uses.values()) <= 3, uses
