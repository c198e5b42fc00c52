"""The synthetic images: the same everywhere, balanced, neither trivial nor hopeless."""

import hashlib

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from launching import train
from sources import synthetic

TIME_BUDGET_S = 190


def test_the_images_are_the_same_bytes_on_every_machine():
    images, labels = synthetic.make_images(3000, seed=0)
    digest = hashlib.sha1(images.tobytes() + labels.astype("<i4").tobytes()).hexdigest()
    assert digest == "33ad55769e35d2f669d28c14f685b2caccdc5a1a"


def test_classes_are_balanced_and_sets_differ():
    images, labels = synthetic.make_images(2000, seed=1)
    assert np.bincount(labels).tolist() == [200] * 10
    assert images.dtype == np.uint8 and images.shape == (2000, 3, 32, 32)
    assert not np.array_equal(images, synthetic.make_images(2000, seed=0)[0])


def test_the_first_images_can_be_made_alone():
    whole, part = synthetic.make_images(3000, 0), synthetic.make_images(3000, 0, first=1200)
    assert all(np.array_equal(a[:1200], b) for a, b in zip(whole, part))


@pytest.mark.long
def test_softmax_regression_on_pixels_stays_under_one_half():
    (images, labels), test = synthetic.make_images(5000, 0), synthetic.make_images(2000, 1)
    pixels = lambda x: x.reshape(len(x), -1).astype("float32") / 127.5 - 1  # noqa: E731
    model = LogisticRegression(C=1e-4, max_iter=100)  # C where it does best on the test set
    accuracy = model.fit(pixels(images), labels).score(pixels(test[0]), test[1])
    assert 0.1 < accuracy < 0.5


@pytest.mark.long
def test_the_default_network_passes_four_fifths_within_two_epochs(tmp_path):
    job = train(tmp_path, "--data", "synthetic", "--num-epochs", "2", "--target-accuracy", "0.8")
    assert job.status == 0, job.stderr
    assert "reached --target-accuracy 0.8" in job.stdout
