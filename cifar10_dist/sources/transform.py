"""Crop, flip and scale images, a whole batch at a time, with NumPy."""

import ctypes
from dataclasses import dataclass
from functools import lru_cache

import mxnet as mx
import numpy as np

PIECE = 64  # images at a time: they stay in the processor's cache
FINE = 2**20  # range of drawn offsets if the images have different sizes


@dataclass(frozen=True)
class Transform:
    """Random changes of the training images, and the scaling of all images.

    Parameters
    ----------
    pad : int
        Pixels of zeros around an image before a random crop.
    random_crop, random_mirror : bool
        Whether to crop at random, and to flip left to right half of the time.
    mean, std : tuple of float
        One for each channel, in units of the bytes (0 to 255).
    shape : tuple of int, optional
        (C, H, W) of the crop if the images may be larger; default: the size of the images.
    """

    pad: int = 0
    random_crop: bool = False
    random_mirror: bool = False
    mean: tuple = (0.0, 0.0, 0.0)
    std: tuple = (255.0, 255.0, 255.0)
    shape: tuple = None

    def draw(self, length, seed, epoch):
        """Return top, left (0 to 2*pad) and flip (0 or 1) of every example, shape (length, 3).

        If images may be larger, top and left are below ``FINE`` instead. All three depend on
        (seed, epoch, example) alone, not on the worker that sees the example. An image that is
        flipped in one epoch is not flipped in the next (Jordan 2024, arXiv 2404.00498).
        """
        corner = np.random.RandomState([seed, epoch, 1]).randint(0, self._num_offsets, (length, 2))
        first = np.random.RandomState([seed, 0, 2]).randint(0, 2, (length, 1))
        return np.concatenate([corner, (first + epoch) % 2], axis=1)

    @property
    def _num_offsets(self):
        return FINE if self.shape else 2 * self.pad + 1

    def change(self, images, draws=None):
        """Return images of shape (n, C, H, W) cropped and flipped as drawn.

        May write into ``images``. The crop is cut out of the padded image; without ``draws`` it is
        the centre. Images of different sizes are given as a list.
        """
        if isinstance(images, list):
            each = [None] * len(images) if draws is None else draws[:, None]
            return np.concatenate([self.change(i[None], draw) for i, draw in zip(images, each)])
        shape = self.shape or images.shape[1:]
        if draws is None:
            return centre(images, shape)
        top, left, flip = draws.T
        if self.random_mirror:
            flipped = np.flatnonzero(flip)
            images[flipped] = _mirrored(images[flipped])
        if not self.random_crop:
            return centre(images, shape)
        if self.pad:
            height, width = (size + 2 * self.pad for size in images.shape[2:])
            padded = np.zeros(images.shape[:2] + (height, width), np.uint8)  # faster than np.pad
            padded[:, :, self.pad : -self.pad, self.pad : -self.pad] = images
            images = padded
        rows, columns = images.shape[2] - shape[1] + 1, images.shape[3] - shape[2] + 1
        windows = np.lib.stride_tricks.as_strided(  # every crop of every image, no copy
            images,
            (len(images), rows, columns) + shape,
            images.strides[:1] + images.strides[2:] + images.strides[1:],
            writeable=False,
        )
        top, left = top * rows // self._num_offsets, left * columns // self._num_offsets
        return windows[np.arange(len(images)), top, left]

    def scale(self, images, out=None):
        """Return bytes of shape (n, C, H, W) as float32: (x - mean) / std of their channel."""
        factor, shift = self._scaling(images.shape[1:])
        out = np.empty(images.shape, np.float32) if out is None else out
        out[...] = images
        out *= factor
        if shift is not None:
            out -= shift
        return out

    @lru_cache(maxsize=8)  # noqa: B019  of small arrays
    def _scaling(self, shape):
        """Return a factor and a shift for every pixel: faster than one for each channel."""
        factor = np.full(shape, 1 / np.array(self.std[: shape[0]], np.float32)[:, None, None])
        shift = np.array(self.mean[: shape[0]], np.float32)[:, None, None] * factor
        return factor, shift if shift.any() else None

    def load(self, images, indices, draws=None):
        """Return the images with these indices as an NDArray, changed as drawn, and scaled."""
        data = mx.nd.empty((len(indices),) + (self.shape or images.shape[1:]))
        memory = memory_of(data)
        for start in range(0, len(indices), PIECE):
            part = indices[start : start + PIECE]
            piece = self.change(images[part], None if draws is None else draws[part])
            self.scale(piece, memory[start : start + PIECE])
        return data


def centre(images, shape):
    """Return the centre, of shape (C, H, W), of images of shape (..., C, H, W)."""
    top, left = ((have - want) // 2 for have, want in zip(images.shape[-2:], shape[1:]))
    return images[..., top : top + shape[1], left : left + shape[2]]


def memory_of(array):
    """Return the memory of a new NDArray on the CPU as a NumPy array, to be filled.

    Nothing else may use the NDArray yet. ``mx.nd.array`` would copy the data, and wait until all
    queued work is done: then nothing could be prepared ahead.
    """
    pointer = ctypes.POINTER(ctypes.c_float)()
    mx.base.check_call(mx.base._LIB.MXNDArrayGetData(array.handle, ctypes.byref(pointer)))
    return np.ctypeslib.as_array(pointer, array.shape)


def _mirrored(images):
    """Return bytes of shape (..., W) flipped left to right, by eights if the width allows it."""
    if images.shape[-1] % 8:
        return images[..., ::-1]
    words = np.ascontiguousarray(images).view(np.uint64)
    mirrored = np.empty_like(words)
    for column in range(words.shape[-1]):  # faster than all at once, with a step of -1
        mirrored[..., column] = words[..., -1 - column]
    return mirrored.byteswap(inplace=True).view(np.uint8)
