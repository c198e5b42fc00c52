"""Learning rates act in every mode: read from the movement of a weight."""

import json
import math
import sys

import pytest

from launching import launch
from programs import effective_rate

TIME_BUDGET_S = 40


def wanted(workers=1, is_async=False):
    """The rate of each update, in each setting, by formulas of its own."""
    updates_per_epoch = effective_rate.STEPS * (workers if is_async else 1)
    n, e = effective_rate.EPOCHS * updates_per_epoch, updates_per_epoch
    k = range(1, n + 1)
    batch = 64 if is_async else 64 * workers
    return [
        [0.5] * n,
        [0.5 * 0.5 ** ((i > e) + (i > 3 * e)) for i in k],
        [0.5 * (1 + math.cos(math.pi * i / (n + 1))) / 2 for i in k],
        [0.5 * (i / e if i <= e else (n + 1 - i) / (n + 1 - e)) for i in k],
        [0.5 * min(i / (2 * e), 1) for i in k],
        [0.5 * batch / 256] * n,
        [0.5 * math.sqrt(batch / 256)] * n,
        [0.5 / workers if is_async else 0.5] * n,  # what the program chooses
    ]


def assert_rates(path, expected):
    found = json.loads(path.read_text())
    assert len(found) == len(expected) == len(effective_rate.SETTINGS)
    for setting, got, rates in zip(effective_rate.SETTINGS, found, expected):
        assert got == pytest.approx(rates, rel=1e-4, abs=1e-6), setting


@pytest.mark.parametrize("kind", ["local", "device"])
@pytest.mark.parametrize("num_devices", [1, 2])
def test_every_schedule_acts_on_the_devices_of_one_process(kind, num_devices, tmp_path):
    effective_rate.main(kind, tmp_path / "found", num_devices)
    assert_rates(tmp_path / "found", wanted())


@pytest.mark.long
@pytest.mark.parametrize("kind", ["dist_sync", "dist_async"])
def test_every_schedule_acts_on_two_workers(kind, tmp_path):
    program = (sys.executable, "tests/programs/effective_rate.py", kind, str(tmp_path / "found"))
    job = launch(tmp_path, "-n", 2, "-s", 1, *program)
    assert job.status == 0, job.stdout + job.stderr
    assert_rates(tmp_path / "found", wanted(2, kind == "dist_async"))
