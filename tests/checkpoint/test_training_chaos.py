"""Trainings disturbed at random end like one that was not; `make chaos RUNS=100` for more."""

import os

import pytest

import training_chaos
from launching import cluster, why_no_cluster

RUNS = int(os.environ.get("TRAINING_CHAOS_RUNS", "5"))
TIME_BUDGET_S = 25 * RUNS
pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(why_no_cluster() is not None, reason=why_no_cluster() or ""),
    pytest.mark.timeout(2 * training_chaos.LIMIT_S),
]


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    cluster("up", "--hosts", "2")
    yield training_chaos.undisturbed(tmp_path_factory.mktemp("undisturbed"))
    cluster("down")


# One of each kind first, then what the dice say.
@pytest.mark.parametrize("seed", range(RUNS))
def test_a_disturbed_training_ends_like_one_that_was_not(seed, reference):
    kinds = list(dict.fromkeys(training_chaos.possible_kinds()))
    outcome = training_chaos.run(seed, reference, [kinds[seed % len(kinds)]])
    assert outcome.is_good, outcome
