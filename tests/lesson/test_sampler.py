"""Each worker's examples: the published sampler, and the program's cut of every global batch."""

import math

from gluon_dist.common.split import split_range

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sampler import GlobalBatchSampler, SplitSampler, epoch_permutation

TIME_BUDGET_S = 10
lengths, parts = st.integers(0, 300), st.integers(1, 9)


@given(lengths, parts)
def test_published_parts_are_disjoint_equal_and_leave_out_the_remainder(length, num_parts):
    seen = [list(SplitSampler(length, num_parts, part)) for part in range(num_parts)]
    assert {len(part) for part in seen} == {length // num_parts}
    flat = sorted(i for part in seen for i in part)
    assert flat == list(range(length - length % num_parts))


def test_the_published_part_is_contiguous_and_shuffled_each_time():
    sampler = SplitSampler(100, 2, 1)
    first, second = list(sampler), list(sampler)
    assert sorted(first) == sorted(second) == list(range(50, 100))
    assert first != second and len(sampler) == 50


@given(lengths, parts)
def test_near_equal_ranges_cover_everything_in_order(length, num_parts):
    ranges = [split_range(length, num_parts, part) for part in range(num_parts)]
    assert [i for start, stop in ranges for i in range(start, stop)] == list(range(length))
    sizes = [stop - start for start, stop in ranges]
    assert max(sizes) - min(sizes) <= 1


@given(st.integers(1, 300), parts, st.integers(1, 70), st.integers(0, 5))
def test_every_example_is_seen_once_an_epoch_by_one_worker(length, workers, batch_size, epoch):
    order = epoch_permutation(length, 7, epoch)
    batch = batch_size * workers
    samplers = [GlobalBatchSampler(order, batch, workers, rank) for rank in range(workers)]
    assert sorted(i for s in samplers for i in s) == list(range(length))
    assert [len(s) for s in samplers] == [len(list(s)) for s in samplers]


@given(st.integers(1, 300), parts, st.integers(1, 70))
def test_a_step_uses_the_same_examples_for_any_number_of_workers(length, workers, global_batch):
    order = epoch_permutation(length, 0, 0)
    samplers = [GlobalBatchSampler(order, global_batch, workers, r) for r in range(workers)]
    alone = GlobalBatchSampler(order, global_batch)
    batches = [list(sampler.batches()) for sampler in (alone, *samplers)]
    assert {len(steps) for steps in batches} == {math.ceil(length / global_batch)}
    for (whole, size), *shares in zip(*batches):
        assert np.array_equal(whole, np.concatenate([indices for indices, _ in shares]))
        assert {size} == {len(whole)} | {n for _, n in shares}


def test_the_order_depends_on_seed_and_epoch_alone():
    assert np.array_equal(epoch_permutation(50, 1, 2), epoch_permutation(50, 1, 2))
    assert not np.array_equal(epoch_permutation(50, 1, 2), epoch_permutation(50, 1, 3))
    assert not np.array_equal(epoch_permutation(50, 1, 2), epoch_permutation(50, 2, 2))


def test_a_part_that_does_not_exist_is_refused():
    with pytest.raises(ValueError, match=r"part_index must be in \[0, 2\), not 2"):
        SplitSampler(10, 2, 2)
    with pytest.raises(ValueError, match=r"part_index must be in \[0, 2\), not -1"):
        GlobalBatchSampler(range(10), 4, 2, -1)
