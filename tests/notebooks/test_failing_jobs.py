"""What the notebook on failures computes from logs, and what it simulates."""

import math

import pytest
from failing_jobs import extra_time, tries_of

TIME_BUDGET_S = 5


@pytest.mark.parametrize("period_s", [300, 1800, 20_000])
def test_the_simulated_cost_is_that_of_the_exact_formula(period_s):
    """Daly 2006: with random failures a piece takes (M + R) (exp((T + C) / M) - 1) on average."""
    save_s, between_s, restart_s = 30, 8 * 3600, 120
    piece_s = (between_s + restart_s) * math.expm1((period_s + save_s) / between_s)
    found = extra_time(period_s, save_s, between_s, restart_s)
    assert 1 + found == pytest.approx(piece_s / period_s, rel=0.02)


def test_each_try_begins_where_the_steps_go_back():
    says = "[worker 0] Epoch[{}] Batch [{}]\tSpeed: 9.00 samples/sec\taccuracy=0.5"
    log = [says.format(0, 1), says.format(1, 1), says.format(1, 2), says.format(1, 1)]
    assert tries_of(["[worker 1] " + log[0][11:], *log], 3) == [
        [(1, 0.5), (4, 0.5), (5, 0.5)],
        [(4, 0.5)],
    ]
