"""The batches that a worker trains on, and its part of the test set."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice

from gluon_dist.common.errors import UsageError
from gluon_dist.common.split import split_range

import mxnet as mx
import numpy as np

from sampler import GlobalBatchSampler, epoch_permutation
from sources.transform import Transform, memory_of


def create_loaders(args, images, workers):
    """Return the loaders of this worker's part of the training set and of the test set.

    Parameters
    ----------
    args : argparse.Namespace
        With ``batch_size`` (of one worker), ``seed`` and ``benchmark``.
    images : sources.images.ImageSource
    workers : Workers

    Returns
    -------
    TrainLoader or RepeatedBatch, EvalLoader

    Raises
    ------
    UsageError
        If there are fewer examples than one step of all workers takes.
    """
    share = args.batch_size, workers.count, workers.rank
    train = TrainLoader(*images.train, *share, args.seed, images.transform)
    test = EvalLoader(*images.test, *share, images.transform)
    available = len(images.train.labels)
    if available < train.global_batch_size:
        raise UsageError(
            f"--batch-size {args.batch_size}: a step of all workers takes "
            f"{train.global_batch_size} examples, and there are {available} ({images.name})"
        )
    return (RepeatedBatch(train) if args.benchmark else train), test


@dataclass
class Batch:
    """What one worker trains on in one step.

    ``data`` is float32 of shape (n, C, H, W) and ``label`` float32 of shape (n,), both on the CPU,
    ``n`` this worker's share of the ``global_size`` examples; both are None where n is 0.
    """

    data: mx.nd.NDArray
    label: mx.nd.NDArray
    global_size: int

    @property
    def size(self):
        """The number of this worker's examples."""
        return 0 if self.data is None else len(self.data)


class TrainLoader:
    """The batches of this worker, epoch by epoch, one batch prepared ahead by a thread.

    Parameters
    ----------
    images : ndarray of uint8, shape (N, C, H, W)
    labels : ndarray of int, shape (N,)
    batch_size : int
        Examples of one worker in one step.
    num_parts, part_index : int
        How many workers share a batch, and which of them this is.
    seed : int
        Seed of the order and of the augmentation.
    transform : Transform
    """

    def __init__(
        self, images, labels, batch_size, num_parts=1, part_index=0, seed=0, transform=None
    ):
        self.images, self.labels = images, labels
        self.global_batch_size = batch_size * num_parts
        self.num_parts, self.part_index, self.seed = num_parts, part_index, seed
        self.transform = transform or Transform()

    def __len__(self):
        """Return the number of steps of an epoch, the same for every worker."""
        return -(-len(self.labels) // self.global_batch_size)

    def epoch(self, epoch, first_step=0):
        """Yield the :class:`Batch` of every step of an epoch, prepared ahead by a thread."""
        return one_ahead(self.batches(epoch, first_step))

    def batches(self, epoch, first_step=0):
        """Yield the :class:`Batch` of every step of an epoch from ``first_step`` on."""
        length = len(self.labels)
        order = epoch_permutation(length, self.seed, epoch)
        sampler = GlobalBatchSampler(order, self.global_batch_size, self.num_parts, self.part_index)
        draws = self.transform.draw(length, self.seed, epoch)
        steps = islice(sampler.batches(), first_step, None)
        return (self._batch(indices, size, draws) for indices, size in steps)

    def _batch(self, indices, global_size, draws):
        if not len(indices):
            return Batch(None, None, global_size)
        data = self.transform.load(self.images, indices, draws)
        return Batch(data, _as_float(self.labels[indices]), global_size)


class EvalLoader:
    """This worker's share of the test set, in order; parameters as for :class:`TrainLoader`."""

    def __init__(self, images, labels, batch_size, num_parts=1, part_index=0, transform=None):
        self.images, self.labels = images, labels
        self.start, self.stop = split_range(len(labels), num_parts, part_index)
        self.batch_size = batch_size
        self.transform = transform or Transform()

    def __iter__(self):
        for start in range(self.start, self.stop, self.batch_size):
            part = np.arange(start, min(start + self.batch_size, self.stop))
            data = self.transform.load(self.images, part)
            yield Batch(data, _as_float(self.labels[part]), len(part))


class RepeatedBatch:
    """The first batch again and again: training without reading data, to measure its speed."""

    def __init__(self, loader):
        self._loader = loader
        self._batch = next(iter(loader.epoch(0)))
        self.global_batch_size = loader.global_batch_size

    def __len__(self):
        return len(self._loader)

    def epoch(self, epoch, first_step=0):
        """Yield as many batches as the loader would."""
        return (self._batch for _ in range(first_step, len(self)))


def _as_float(labels):
    array = mx.nd.empty(labels.shape)
    memory_of(array)[:] = labels
    return array


def one_ahead(batches):
    """Yield from an iterator whose next item a thread prepares meanwhile."""
    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(next, batches, None)
        while True:
            batch = coming.result()
            if batch is None:
                return
            coming = pool.submit(next, batches, None)
            yield batch
