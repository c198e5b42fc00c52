"""Synthetic images in CIFAR-10's format, for machines without CIFAR-10.

Ten textures: stripes in four directions and a checkerboard, each fine and coarse, in random
colours, at a random phase, with noise. The classes differ in local patterns that can be anywhere,
which suits a convolution; single pixels tell almost nothing. Only whole numbers from NumPy's frozen
generator are used, so that the bytes are the same on every machine.
"""

import numpy as np

from sources.image_set import ImageSet

NUM_CLASSES = 10
NUM_TRAIN, NUM_TEST = 10000, 2000
SIZE = 32


def make_images(num_examples, seed, first=None):
    """Return a balanced, shuffled set of textures.

    Parameters
    ----------
    num_examples : int
        Number of images; the classes get equal numbers, to within one.
    seed : int
        The same seed gives the same bytes on every machine.
    first : int, optional
        Make only the first ``first`` of them.

    Returns
    -------
    ImageSet
        Images of shape (num_examples, 3, 32, 32).
    """
    rng = np.random.RandomState(seed)
    labels = rng.permutation(np.arange(num_examples) % NUM_CLASSES).astype(np.int32)
    count = min(num_examples, first or num_examples)
    pieces = [np.empty((0, 3, SIZE, SIZE), np.uint8)]
    for start in range(0, count, 1000):  # in pieces, to use little memory
        pieces.append(_draw(labels[start : start + 1000], rng).astype(np.uint8))
    return ImageSet(np.concatenate(pieces)[:count], labels[:count])


def _draw(labels, rng):
    """Draw one texture for each label, shape (n, 3, 32, 32)."""
    n = len(labels)
    pattern, coarse = labels % 5, labels // 5
    half_period = np.where(coarse, 6, 2)[:, None, None]  # pixels
    y, x = np.mgrid[:SIZE, :SIZE]
    fields = np.stack([x, y, x + y, x - y + SIZE])
    phase = rng.randint(0, 12, (n, 2, 1, 1))  # a multiple of both periods, 4 and 12
    light = (fields[pattern % 4] + phase[:, 0]) // half_period % 2
    across = (fields[1] + phase[:, 1]) // half_period % 2
    light = np.where((pattern == 4)[:, None, None], light ^ across, light)

    # Each class has a weak colour of its own, so that a network learns from its first steps on.
    lean = np.array([[c * 37 % 97, c * 61 % 97, c * 83 % 97] for c in range(NUM_CLASSES)]) - 48
    middle = 128 + lean[labels] * 65 // 100 + rng.randint(-40, 41, (n, 3))
    contrast = rng.randint(40, 81, (n, 3)) * (rng.randint(0, 2, (n, 3)) * 2 - 1)
    images = middle[..., None, None] + (2 * light[:, None] - 1) * contrast[..., None, None]
    return np.clip(images + rng.randint(-30, 31, images.shape), 0, 255)
