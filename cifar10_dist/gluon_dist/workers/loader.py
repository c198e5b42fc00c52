"""A worker's part of every batch of a data set, epoch by epoch."""

import operator
import random
from itertools import islice
from typing import (
    TYPE_CHECKING,
    Callable,
    Dict,
    Iterator,
    List,
    Optional,
    Protocol,
    Sequence,
    Tuple,
)

from gluon_dist.workers.batch import Batch
from gluon_dist.workers.group import workers
from gluon_dist.workers.order import epoch_permutation, global_batches
from gluon_dist.workers.seeded import Seeded

import numpy as np
from mxnet import gluon

if TYPE_CHECKING:  # NumPy has it from 1.21
    from numpy.typing import NDArray as Array

    Step = Tuple[int, Array[np.int64]]  # its number, its examples

BELOW = 2**32  # seeds and epochs: what NumPy's generator takes
NAMES = {"length": "dataset: its length"}


class Examples(Protocol):
    """What a data set must have."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int, /) -> object: ...


# In annotations Batch stands in text: typing would keep an Iterator[Batch] for ever, with it this
# module and the store, and a store that is not deleted ends the process with SIGABRT.


class DataLoader(gluon.data.DataLoader):
    """This worker's part of every batch. The last may be shorter: no example is left out.

    Each step takes ``batch_size`` examples for all workers together, and each worker gets a
    near-equal part. The examples that are left for the last step are shared out in the same way: no
    example is dropped or repeated, and a worker may get none. All workers take the same number of
    steps, and pass ``batch.global_size`` to ``Trainer.step``.

    It differs from ``gluon.data.DataLoader`` in this: ``shuffle`` is True if you do not say
    otherwise, and the fourth argument is ``seed``. There is no ``sampler``, ``last_batch``,
    ``batch_sampler`` or ``auto_reload``.

    The order of an epoch depends on ``seed`` and the epoch only. So a step uses the same examples
    for any number of workers, and after a restart. A worker gets a
    :class:`Batch`: the list that Gluon gives, with its sizes and ``split``. The list is empty if
    this worker has no example: loop over ``batch.split(devices)``. BatchNorm and dropout see a
    worker's own part: with them results depend on the number of workers.

    Parameters
    ----------
    dataset : sequence
        With ``len()`` and ``dataset[i]``, as ``gluon.data.Dataset``. The same on all workers.
    batch_size : int
        The number of examples of all workers in one step.
    shuffle : bool
        True: a new order in every epoch. False: the order of the data set.
    seed : int
        In ``[0, 2**32)``. For the order, and for the random numbers of transforms.
    batchify_fn : callable, optional
        Makes arrays of a list of examples. Default: it stacks them.
    num_workers : int
        Processes (threads with ``thread_pool``) that load examples for this worker. They are
        started once. 0: this process loads them.
    pin_memory, pin_device_id, prefetch, thread_pool, timeout
        As for ``gluon.data.DataLoader``.

    Attributes
    ----------
    dataset, batch_size, seed
        As given.

    Raises
    ------
    TypeError, ValueError
        Naming the argument that is wrong. Also on every worker, if the workers differ in
        ``batch_size``, ``shuffle``, ``seed`` or the length of the data set.

    Notes
    -----
    All workers must create their loaders in the same order: there they compare their arguments.

    Transforms may draw random numbers. They are repeatable as follows.

    - From Python's ``random`` and NumPy's global generator: they depend on the seed, the epoch and
      the example only, for any number of workers and processes. Your own draws elsewhere do not
      change.
    - From MXNet's generator, as Gluon's own random transforms: with ``num_workers`` they depend on
      the seed, the epoch, the step and the rank. (To seed it takes 6 ms.) Without ``num_workers``
      they continue from your program's: seed it (``mx.random.seed``) before every step.
    - With ``thread_pool`` they are not repeatable: threads share the generators, and nothing is
      seeded.

    On Linux the processes are forked from this one when the loader is created, which may be after
    the store was made. They end with the loader.

    Examples
    --------
    >>> data = mx.gluon.data.ArrayDataset(mx.nd.arange(5), mx.nd.arange(5) * 10)
    >>> loader = gd.DataLoader(data, batch_size=2, shuffle=False)
    >>> for batch in loader:
    ...     for data, label in batch.split(mx.cpu()):
    ...         print(label.asnumpy(), batch.global_size)
    [ 0. 10.] 2
    [20. 30.] 2
    [40.] 1
    """

    def __init__(
        self,
        dataset: Examples,
        batch_size: int,
        shuffle: bool = True,
        seed: int = 0,
        *,
        batchify_fn: Optional[Callable[..., object]] = None,
        num_workers: int = 0,
        pin_memory: bool = False,
        pin_device_id: int = 0,
        prefetch: Optional[int] = None,
        thread_pool: bool = False,
        timeout: float = 120,
    ) -> None:
        self._worker_pool = None  # Gluon's own, which its destructor looks for
        self.dataset, self._length = dataset, _length(dataset)
        self.batch_size = _whole("batch_size", batch_size, 1)
        self.seed = _whole("seed", seed, 0, BELOW)
        if not isinstance(shuffle, bool):
            raise TypeError(f"shuffle {shuffle!r}: True or False is needed")
        self._shuffle = shuffle
        _whole("num_workers", num_workers, 0)
        if prefetch is not None:
            _whole("prefetch", prefetch, 0)
        if not timeout > 0:
            raise ValueError(f"timeout {timeout!r}: a number of seconds above 0 is needed")
        self._workers = workers()
        self._agree()
        self._next_epoch = 0
        self._epoch_sampler = _EpochSampler()
        self._draws_here = num_workers == 0
        with_processes = num_workers > 0 and not thread_pool
        super().__init__(
            Seeded(dataset, self.seed, self._workers.rank, self._draws_here, with_processes),
            batch_sampler=self._epoch_sampler,
            batchify_fn=batchify_fn,
            num_workers=num_workers,
            pin_memory=pin_memory,
            pin_device_id=pin_device_id,
            prefetch=prefetch,
            thread_pool=thread_pool,
            timeout=timeout,
        )

    def __len__(self) -> int:
        """Return the number of steps of an epoch, the same on all workers."""
        return -(-self._length // self.batch_size)

    def __iter__(self) -> "Iterator[Batch]":
        """Return the batches of the next epoch, beginning with epoch 0."""
        return self.epoch(self._next_epoch)

    def epoch(self, epoch: int, first_step: int = 0) -> "Iterator[Batch]":
        """Return the batches of one epoch, from a step on. A restart uses it.

        Parameters
        ----------
        epoch : int
            From 0. A later loop over the loader itself takes the epoch after it.
        first_step : int
            In ``[0, len(loader)]``.

        Returns
        -------
        iterator of batches
            The same batches that the whole epoch has from this step on.

        Raises
        ------
        TypeError, ValueError
            If a number is no whole number, or out of its range.
        """
        epoch = _whole("epoch", epoch, 0, BELOW)
        first_step = _whole("first_step", first_step, 0, len(self) + 1)
        self._next_epoch = epoch + 1
        return self._batches(epoch, first_step)

    def facts(self) -> Dict[str, int]:
        """Return the numbers that the order of an epoch depends on, for a checkpoint.

        Returns
        -------
        dict of str to int
            ``length`` (of the data set), ``batch_size``, ``steps`` (of an epoch), ``shuffle`` and
            ``seed``.
        """
        return {
            "length": self._length,
            "batch_size": self.batch_size,
            "steps": len(self),
            "shuffle": self._shuffle,
            "seed": self.seed,
        }

    def _batches(self, epoch: int, first_step: int) -> "Iterator[Batch]":
        steps = list(enumerate(self._steps(epoch, first_step), first_step))
        loaded = self._loaded(epoch, [(step, part) for step, (part, _) in steps if len(part)])
        for _, (part, global_size) in steps:
            content = self._draw_apart(loaded) if len(part) else []
            yield Batch(content, len(part), global_size)

    def _steps(self, epoch: int, first_step: int) -> "Iterator[Tuple[Array[np.int64], int]]":
        order = np.arange(self._length)
        if self._shuffle:
            order = epoch_permutation(self._length, self.seed, epoch)
        share = self.batch_size, self._workers.count, self._workers.rank
        return islice(global_batches(order, *share), first_step, None)

    def _loaded(self, epoch: int, steps: "List[Step]") -> Iterator[object]:
        """Yield the arrays that Gluon's loader makes of each part; no part is empty."""
        self._epoch_sampler.coming = epoch, steps
        yield from super().__iter__()  # it takes them now

    def _draw_apart(self, loaded: Iterator[object]) -> object:
        """Return the next batch; the user's random generators are left as they were."""
        if not self._draws_here:
            return next(loaded)
        states = random.getstate(), np.random.get_state()
        try:
            return next(loaded)
        finally:
            random.setstate(states[0])
            np.random.set_state(states[1])

    def _agree(self) -> None:
        """Compare what must be equal on all workers; raise on all of them if it is not."""
        facts = self.facts()
        rows = self._workers.collectives.all_gather(np.array([*facts.values()], np.float64))
        for (name, value), column in zip(facts.items(), rows.T):
            for rank in np.flatnonzero(column != column[0])[:1]:
                first, other = (type(value)(number) for number in column[[0, rank]])
                raise ValueError(
                    f"{NAMES.get(name, name)}: {first} on worker 0, {other} on worker {rank}; "
                    "all workers must have the same"
                )


class _EpochSampler(gluon.data.Sampler):
    """Yields the keys of each batch: (epoch, example, step), see :class:`Seeded`."""

    coming: "Tuple[int, Sequence[Step]]" = 0, ()

    def __iter__(self) -> Iterator[List[Tuple[int, int, Optional[int]]]]:
        epoch, steps = self.coming
        for step, part in steps:
            first, *rest = part.tolist()
            yield [(epoch, first, step), *((epoch, index, None) for index in rest)]

    def __len__(self) -> int:
        return len(self.coming[1])


def _length(dataset: Examples) -> int:
    """Return the number of examples, at least one."""
    try:
        length = len(dataset)
    except TypeError:
        kind = type(dataset).__name__
        raise TypeError(f"dataset: a {kind} has no len(), and an order needs one") from None
    if not length:
        raise ValueError("dataset: it has no examples")
    return length


def _whole(name: str, value: int, lowest: int, below: Optional[int] = None) -> int:
    """Return a whole number in a range."""
    try:
        number = operator.index(value)
    except TypeError:
        number = None
    if number is None or isinstance(value, bool):
        raise TypeError(f"{name} {value!r}: a whole number is needed")
    if number < lowest or (below is not None and number >= below):
        limits = f"from {lowest} on" if below is None else f"in [{lowest}, {below})"
        raise ValueError(f"{name} {value!r}: a number {limits} is needed")
    return number
