"""The learning rate by update, against formulas written here."""

import math

import pytest

from run.schedule import create_schedule, scaled_learning_rate

TIME_BUDGET_S = 10


def rates(kind, updates, **options):
    """Rates of the given updates, counted from 1, of 4 epochs of 10 steps at 0.8."""
    schedule = create_schedule(kind, 0.8, steps_per_epoch=10, num_epochs=4, **options)
    return [schedule(update) for update in updates]


def test_constant_stays():
    assert rates("constant", [1, 20, 40]) == [0.8, 0.8, 0.8]


def test_steps_fall_with_the_first_update_of_their_epoch():
    got = rates("step", [1, 10, 11, 30, 31, 40], factor=0.5, at=[1, 3])
    assert got == pytest.approx([0.8, 0.8, 0.4, 0.4, 0.2, 0.2])


def test_cosine_falls_along_half_a_wave_and_still_moves_at_the_end():
    wanted = [0.8 * (1 + math.cos(math.pi * k / 41)) / 2 for k in (1, 20, 40)]
    assert rates("cosine", [1, 20, 40]) == pytest.approx(wanted)
    assert rates("cosine", [40])[0] > 0


def test_one_cycle_rises_and_falls_in_straight_lines():
    got = rates("onecycle", [1, 5, 10, 25, 40], warmup_epochs=1)
    assert got == pytest.approx([0.08, 0.4, 0.8, 0.8 * 16 / 31, 0.8 / 31])


@pytest.mark.parametrize("kind", ["constant", "step", "cosine", "onecycle"])
def test_every_schedule_warms_up_in_a_straight_line(kind):
    got = rates(kind, [5, 10, 15], warmup_epochs=2, at=[3])
    assert got == pytest.approx([0.2, 0.4, 0.6])


def test_scaling_with_the_batch_of_an_update():
    got = [scaled_learning_rate(0.1, how, 1024) for how in ("none", "sqrt", "linear", "staleness")]
    assert got == pytest.approx([0.1, 0.2, 0.4, 0.1])
