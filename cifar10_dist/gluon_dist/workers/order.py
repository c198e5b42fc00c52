"""The order of the examples of an epoch, and a worker's part of each step."""

from typing import TYPE_CHECKING, Iterator, Tuple

from gluon_dist.common.split import split_range

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Indices = NDArray[np.int64]


def epoch_permutation(length: int, seed: int, epoch: int) -> "Indices":
    """Return the order of the examples of an epoch for all workers together, shape ``(length,)``.

    It depends on ``(seed, epoch)`` alone: the same on every worker, and in a restarted job. An
    example may go to another worker in another epoch.
    """
    return np.random.RandomState([seed, epoch]).permutation(length)


def global_batches(
    order: "Indices", batch_size: int, num_parts: int = 1, part_index: int = 0
) -> "Iterator[Tuple[Indices, int]]":
    """Yield ``(indices, global_size)`` for every step of an epoch.

    Parameters
    ----------
    order : array of int, shape (length,)
        Order of the epoch, see :func:`epoch_permutation`.
    batch_size : int
        Examples of all workers in one step; the last batch may have fewer.
    num_parts, part_index : int
        How many workers share a batch, and which of them this is.

    Yields
    ------
    indices : array of int
        This worker's part of the batch: contiguous, perhaps empty. All parts are near-equal.
    global_size : int
        Examples of all workers in this step.
    """
    for first in range(0, len(order), batch_size):
        whole = order[first : first + batch_size]
        start, stop = split_range(len(whole), num_parts, part_index)
        yield whole[start:stop], len(whole)
