"""Batches and augmentation, against one image at a time."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loader import EvalLoader, TrainLoader
from sources.transform import PIECE, Transform

TIME_BUDGET_S = 10
RNG = np.random.RandomState(0)
IMAGES = RNG.randint(0, 256, (23, 3, 8, 6)).astype(np.uint8)
LABELS = np.arange(23)
ALL = Transform(2, True, True, mean=(10.0, 20.0, 30.0), std=(50.0, 60.0, 70.0))


def one_by_one(image, draw):
    """Do to one image what ALL does to a batch."""
    top, left, flip = draw
    image = image[:, :, ::-1] if flip else image
    _, height, width = image.shape
    padded = np.zeros((3, height + 4, width + 4))
    padded[:, 2:-2, 2:-2] = image
    crop = padded[:, top : top + height, left : left + width]
    return (crop - [[[10]], [[20]], [[30]]]) / [[[50]], [[60]], [[70]]]


def epoch_of(workers, rank, batch_size, epoch=0, transform=ALL):
    return list(TrainLoader(IMAGES, LABELS, batch_size, workers, rank, 5, transform).epoch(epoch))


def test_a_whole_batch_is_changed_as_its_images_one_by_one():
    draws = ALL.draw(23, 5, 0)
    batches = epoch_of(1, 0, 7)
    assert [len(batch.data) for batch in batches] == [7, 7, 7, 2]
    for batch in batches:
        for data, label in zip(batch.data.asnumpy(), batch.label.asnumpy().astype(int)):
            wanted = one_by_one(IMAGES[label], draws[label])
            np.testing.assert_allclose(data, wanted, rtol=1e-5, atol=1e-6)


def test_a_batch_of_several_pieces_whose_width_is_a_multiple_of_eight_is_changed_as_its_images():
    images = RNG.randint(0, 256, (2 * PIECE + 3, 3, 4, 16)).astype(np.uint8)
    draws = ALL.draw(len(images), 5, 0)
    loaded = ALL.load(images, np.arange(len(images)), draws).asnumpy()
    wanted = [one_by_one(image, draw) for image, draw in zip(images, draws)]
    np.testing.assert_allclose(loaded, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("workers", [2, 3, 4])
def test_workers_together_see_what_one_sees_also_augmented(workers):
    shares = [epoch_of(workers, rank, 12 // workers) for rank in range(workers)]
    assert [len(share) for share in shares] == [2] * workers
    for whole, *parts in zip(epoch_of(1, 0, 12), *shares):
        data = np.concatenate([p.data.asnumpy() for p in parts if p.data is not None])
        np.testing.assert_array_equal(whole.data.asnumpy(), data)
        assert {whole.global_size} == {part.global_size for part in parts} == {len(data)}


def test_a_worker_without_an_example_in_the_last_batch_takes_part():
    last = epoch_of(workers=11, rank=10, batch_size=2)[-1]
    assert last.data is None and last.label is None and last.global_size == 1


def test_every_worker_takes_as_many_steps():
    loaders = [TrainLoader(IMAGES, LABELS, 4, 3, rank) for rank in range(3)]
    assert {len(loader) for loader in loaders} == {len(list(x.epoch(0))) for x in loaders} == {2}


def test_augmentation_covers_every_place_and_both_sides_and_differs_by_epoch():
    draws = ALL.draw(2000, 0, 0)
    assert set(draws[:, 0]) == set(draws[:, 1]) == set(range(5))
    assert 0.4 < draws[:, 2].mean() < 0.6
    assert not np.array_equal(draws, ALL.draw(2000, 0, 1))


def test_without_augmentation_bytes_become_zero_to_one():
    batch = epoch_of(1, 0, 23, transform=Transform())[0]
    order = batch.label.asnumpy().astype(int)
    np.testing.assert_allclose(batch.data.asnumpy(), IMAGES[order] / 255, rtol=1e-6)


@given(st.integers(1, 5), st.integers(1, 9))
def test_the_test_set_is_shared_out_whole_and_in_order(workers, batch_size):
    loaders = [EvalLoader(IMAGES, LABELS, batch_size, workers, r) for r in range(workers)]
    labels = [label for x in loaders for b in x for label in b.label.asnumpy()]
    assert labels == LABELS.tolist()


def test_an_error_in_the_thread_that_prepares_batches_is_raised_here():
    with pytest.raises(IndexError):
        list(TrainLoader(IMAGES[:5], LABELS, 4).epoch(0))


def test_an_image_is_flipped_in_every_other_epoch():
    first, second, third = (ALL.draw(50, 0, epoch)[:, 2] for epoch in range(3))
    np.testing.assert_array_equal(first, 1 - second)
    np.testing.assert_array_equal(first, third)


def test_gray_images_stay_gray():
    batch = next(iter(EvalLoader(IMAGES[:, :1], LABELS, 23)))
    np.testing.assert_allclose(batch.data.asnumpy(), IMAGES[:, :1] / 255, rtol=1e-6)


def test_the_images_that_batches_are_made_of_stay_as_they_are():
    before = IMAGES.copy()
    epoch_of(1, 0, 7)
    np.testing.assert_array_equal(IMAGES, before)
