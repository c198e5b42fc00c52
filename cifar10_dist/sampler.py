"""Which examples a worker trains on."""

from gluon_dist.workers.order import epoch_permutation, global_batches

import numpy as np
from mxnet.gluon.data.sampler import Sampler

__all__ = ["GlobalBatchSampler", "SplitSampler", "epoch_permutation"]


class SplitSampler(Sampler):
    """Sample from one of several equal parts of a data set: MXNet's distributed lesson's sampler.

    The parts are contiguous and the same in every epoch; a part is shuffled each time it is
    visited. So no worker ever sees the examples of another, and the last ``length % num_parts``
    are never seen.

    Parameters
    ----------
    length : int
        Number of examples in the data set.
    num_parts : int
        Number of workers.
    part_index : int
        Rank of this worker, in ``[0, num_parts)``.

    Raises
    ------
    ValueError
        If ``part_index`` is not a part.
    """

    def __init__(self, length, num_parts=1, part_index=0):
        if not 0 <= part_index < num_parts:
            raise ValueError(f"part_index must be in [0, {num_parts}), not {part_index}")
        self.length, self.num_parts, self.part_index = length, num_parts, part_index

    def __iter__(self):
        part = np.arange(len(self)) + len(self) * self.part_index
        np.random.shuffle(part)
        return iter(part.tolist())

    def __len__(self):
        return self.length // self.num_parts


class GlobalBatchSampler(SplitSampler):
    """Sample from one part of every global batch: what the program trains with.

    It cuts *positions* of an epoch's permutation. All workers together take ``global_batch_size``
    positions a step, and each gets a near-equal part of them. So all examples are seen once an
    epoch, and a step uses the same examples for any number of workers.

    Parameters
    ----------
    permutation : array of int, shape (length,)
        Order of the epoch, see :func:`epoch_permutation`.
    global_batch_size : int
        Examples of all workers in one step; the last batch may have fewer.
    num_parts, part_index : int
        As of :class:`SplitSampler`.
    """

    def __init__(self, permutation, global_batch_size, num_parts=1, part_index=0):
        super().__init__(len(permutation), num_parts, part_index)
        self.permutation, self.global_batch_size = permutation, global_batch_size

    def batches(self):
        """Yield ``(indices, size)`` for every step: this worker's part, and all workers' count."""
        return global_batches(
            self.permutation, self.global_batch_size, self.num_parts, self.part_index
        )

    def __iter__(self):
        return (index for indices, _ in self.batches() for index in indices.tolist())

    def __len__(self):
        return sum(len(indices) for indices, _ in self.batches())
