"""``--flip-test``: the mean of the scores of an image and of its mirror image."""

import mxnet as mx
import numpy as np
import pytest

from networks.mirror import network_to_test

TIME_BUDGET_S = 5
IMAGES = mx.nd.array(np.random.RandomState(0).rand(3, 2, 4, 5))


def first_column(images):
    """Scores that a mirror image does not share."""
    return images[:, :, :, 0].reshape((len(images), -1))


@pytest.mark.parametrize("flip_test, is_last", [("1", False), ("1", True), ("last", True)])
def test_the_scores_are_the_mean_of_an_image_and_its_mirror_image(flip_test, is_last):
    tested = network_to_test(first_column, flip_test, is_last)
    wanted = (IMAGES.asnumpy()[..., 0] + IMAGES.asnumpy()[..., -1]).reshape(3, -1) / 2
    np.testing.assert_allclose(tested(IMAGES).asnumpy(), wanted, rtol=1e-6)


@pytest.mark.parametrize("flip_test, is_last", [("0", True), ("last", False)])
def test_otherwise_the_network_itself_is_tested(flip_test, is_last):
    assert network_to_test(first_column, flip_test, is_last) is first_column
