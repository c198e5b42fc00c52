"""Which examples a worker trains on."""

import numpy as np
from mxnet.gluon.data.sampler import Sampler

from ground.split import split_range


def epoch_permutation(length, seed, epoch):
    """Order in which all workers together visit the examples of an epoch, shape ``(length,)``.

    It depends on ``(seed, epoch)`` alone, so that every worker finds the same one, in a restarted
    job too, and none of the examples stays with one worker.
    """
    return np.random.RandomState([seed, epoch]).permutation(length)


class SplitSampler(Sampler):
    """Sample from one part of a data set of ``length`` examples.

    Without ``permutation`` the parts are contiguous, equal and the same in every epoch, and a part
    is shuffled each time it is visited: the sampler of MXNet's distributed lesson. The last
    ``length % num_parts`` examples are then never seen, and no worker ever sees another's part.

    With ``permutation`` the sampler cuts *positions* of that order instead: each global batch of
    ``global_batch_size`` positions is cut into near-equal parts, one for each worker. All examples
    are seen once, and a step uses the same examples for any number of workers.

    Parameters
    ----------
    length : int
        Number of examples in the data set.
    num_parts : int
        Number of workers.
    part_index : int
        Rank of this worker, in ``[0, num_parts)``.
    permutation : array of int, shape (length,), optional
        Order of the epoch, see :func:`epoch_permutation`.
    global_batch_size : int, optional
        Examples of all workers in one step; one batch of ``length`` when not given.

    Raises
    ------
    ValueError
        If ``part_index`` is not a part, or ``permutation`` has another length.
    """

    def __init__(self, length, num_parts=1, part_index=0, permutation=None, global_batch_size=None):
        if not 0 <= part_index < num_parts:
            raise ValueError(f"part_index must be in [0, {num_parts}), not {part_index}")
        if permutation is not None and len(permutation) != length:
            raise ValueError(f"permutation has {len(permutation)} entries, not {length}")
        self.num_parts, self.part_index = num_parts, part_index
        self.permutation = permutation
        self.global_batch_size = global_batch_size or max(length, 1)
        self.part_len = length // num_parts
        self.start = self.part_len * part_index
        self.length = length

    def batches(self):
        """Yield ``(indices, size)`` for every step: this worker's part, and all workers' count."""
        for first in range(0, self.length, self.global_batch_size):
            whole = self.permutation[first : first + self.global_batch_size]
            start, stop = split_range(len(whole), self.num_parts, self.part_index)
            yield whole[start:stop], len(whole)

    def __iter__(self):
        if self.permutation is None:
            part = np.arange(self.start, self.start + self.part_len)
            np.random.shuffle(part)
            return iter(part.tolist())
        return (index for indices, _ in self.batches() for index in indices.tolist())

    def __len__(self):
        if self.permutation is None:
            return self.part_len
        full, rest = divmod(self.length, self.global_batch_size)
        sizes = [self.global_batch_size] * full + [rest]
        ranges = (split_range(size, self.num_parts, self.part_index) for size in sizes)
        return sum(stop - start for start, stop in ranges)
