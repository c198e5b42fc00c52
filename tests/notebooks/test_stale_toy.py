"""The toy of notebook 03 against what theory says of stale gradients."""

import math

import numpy as np
import pytest

from experiments.stale_toy import average_of_random, descend, largest_rate, with_momentum

TIME_BUDGET_S = 10


@pytest.mark.parametrize("staleness", [0, 1, 4])
def test_the_largest_rate_is_that_of_the_roots_on_the_unit_circle(staleness):
    assert largest_rate(staleness) == pytest.approx(
        2 * math.sin(math.pi / (4 * staleness + 2)), 1e-2
    )


def test_fresh_gradients_shrink_the_weight_by_the_same_share():
    assert descend(0.25, 0, num_steps=3) == [1, 0.75, 0.75**2, 0.75**3]


@pytest.mark.parametrize("num_workers", [1, 2, 4])
def test_random_staleness_is_on_average_a_momentum(num_workers):
    late = average_of_random(0.2, num_workers)
    momentum = with_momentum(0.2 / num_workers, 1 - 1 / num_workers)
    assert np.abs(late - momentum).max() < 0.02
