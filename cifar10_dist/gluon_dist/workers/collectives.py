"""Collective operations between workers, made of a kvstore's ``init``, ``push`` and ``pull``.

What a Trainer does for gradients is done here for other numbers. MXNet has no such operations.
"""

from functools import reduce

from gluon_dist.common.errors import UsageError
from gluon_dist.setup.shared_store import LAST_KEY
from gluon_dist.workers.shared_flag import OwnFlag, SharedFlag

import mxnet as mx
import numpy as np

FIRST_KEY = 100_000  # above the keys of any Trainer, which count from 0
SHORTEST, LONGEST = 16, 1 << 20  # numbers in a message; between them are powers of two


class Collectives:
    """All-reduce, all-gather and broadcast of arrays; all workers make the same calls.

    Messages have few lengths, so that their keys and buffers are used again: arrays are filled up
    with zeros to a power of two, and long ones are cut.

    Parameters
    ----------
    store : OwnCalls
        Of a store whose type begins with ``dist``, with any number of workers.

    Attributes
    ----------
    threshold : numpy.float32 or None
        Set when the store quantises what is pushed to 0 and ± this from now on. Results stay
        exact: what is pushed is then 0 or ``threshold`` itself, bit by bit.
    """

    def __init__(self, store):
        self._store, self.rank, self.count = store, store.rank, store.num_workers
        self._is_async = "async" in store.type
        self._next_key = FIRST_KEY
        self._keys = {}  # length -> (key, buffer); dist_async: two first keys, see _keys_for_all
        self._replaces, self.threshold = False, None
        self.take_trainer_keys = TrainerKeys()

    def note_compression(self, threshold):
        """Note that the store quantises from now on."""
        self.threshold = np.float32(threshold)
        self._keys = {}  # a key keeps the message format of its first use

    def note_server_optimizer(self):
        """Note that the servers of ``dist_async`` now have a ``CountingOptimizer``.

        With it a push replaces the value of one of these keys. Before, each exchange needs new
        keys, as a server without an optimizer takes no second push.
        """
        self._replaces = True

    def all_reduce(self, values):
        """Return the sum of a float32 vector over all workers, in float32."""
        if self.threshold is not None:
            return self.all_gather(values).sum(axis=0)
        parts = (self._add_up(values[part]) for part in _parts(len(values), LONGEST))
        return np.concatenate([values[:0], *parts])

    def all_gather(self, values):
        """Return exact copies of the arrays of all workers, shape (workers, *values.shape).

        MXNet's servers may keep float64 as float32: the flag that decides it is never initialised
        (``multi_precision_`` in kvstore_dist_server.h). So each number travels as 16-bit pieces,
        which float32 holds exactly, in a slot where all other workers add zero.
        """
        pieces = _pieces_of(values)
        rows = np.zeros((self.count, pieces.size), np.uint16)
        if self._is_async:
            for part in self._parts(pieces.size):
                got = self.all_gather_alone(self._pack(pieces[part]))
                rows[:, part] = list(map(self._unpack, got))
        else:
            rows[self.rank] = pieces
            rows = self._sum_pieces(rows.ravel()).reshape(rows.shape)
        return _from_pieces(rows, (self.count, *values.shape), values.dtype)

    def all_gather_alone(self, values):
        """Return the float32 vectors of all workers, even if their stores differ in type.

        Each pushes to a key of its own, under which a server stores it as it is, and pulls all.
        At most ``LONGEST`` numbers.
        """
        values, length = _filled_up(values), len(values)
        first = self._keys_for_all(len(values))
        self._store.push(first + self.rank, mx.nd.array(values))
        self.barrier()
        return [row[:length] for row in self._pull(range(first, first + self.count), len(values))]

    def broadcast(self, values, root=0):
        """Return an exact copy of one worker's array; the other workers pass one of its shape."""
        pieces = _pieces_of(values)
        if self.rank != root:
            pieces = np.zeros_like(pieces)
        if self._is_async:
            for part in self._parts(pieces.size):
                pieces[part] = self._unpack(self._from_one(self._pack(pieces[part]), root))
        else:
            pieces = self._sum_pieces(pieces)
        return _from_pieces(pieces, values.shape, values.dtype)

    def barrier(self):
        """Wait until all workers have come here and what they pushed is on the servers."""
        mx.nd.waitall()
        self._store._barrier()

    def shared_flag(self):
        """Return a flag that any worker raises and all workers see."""
        return SharedFlag(self._store, self._take_keys(1))

    def _from_one(self, values, root):
        """Return the float32 vector of one worker, on ``dist_async``."""
        values, length = _filled_up(values), len(values)
        key = self._keys_for_all(len(values)) + root if self._replaces else self._take_keys(1)
        if self.rank == root:
            self._store.push(key, mx.nd.array(values))
        self.barrier()
        return self._pull([key], len(values))[0][:length]

    def _pull(self, keys, length):
        """Return the float32 vector of each key."""
        rows = [(key, mx.nd.zeros(length)) for key in keys]
        for key, row in rows:
            self._store.pull(key, out=row)
        return [row.asnumpy() for _, row in rows]

    def _add_up(self, values):
        """Return the sum of float32 vectors of at most ``LONGEST`` numbers."""
        if self._is_async:
            return reduce(np.add, self.all_gather_alone(values))
        control = self.threshold or np.float32(1)
        total = self._push_pull(np.append(_filled_up(values), control))
        return self._checked(total)[: len(values)]

    def _push_pull(self, values):
        """Push a vector and pull the sum: on ``dist_sync`` the server adds up what workers push."""
        if len(values) not in self._keys:
            buffer = mx.nd.zeros(len(values))
            self._keys[len(values)] = self._take_keys(1), buffer
            self._store.init(self._keys[len(values)][0], buffer)
        key, buffer = self._keys[len(values)]
        buffer[:] = values
        self._store.push(key, buffer)
        self._store.pull(key, out=buffer)
        return buffer.asnumpy()  # waits: a second push before it would count as another worker's

    def _checked(self, total):
        """Return a sum without its last number: each worker has pushed 1 there, or the threshold.

        Raises
        ------
        UsageError
            The servers have changed it.
        """
        if not abs(total[-1] / (self.threshold or 1) - self.count) < 1e-3:
            raise UsageError(
                "the servers do not add up what the workers push: create the Trainer with "
                "update_on_kvstore=False, and without compression_params"
            )
        return total[:-1]

    def _sum_pieces(self, pieces):
        """Add up a vector of 16-bit whole numbers; no sum may exceed 16 bits."""
        total = np.empty_like(pieces)
        for part in self._parts(len(pieces)):
            total[part] = self._unpack(self._add_up(self._pack(pieces[part])))
        return total

    def _parts(self, num_pieces):
        """Return the slices of so many pieces that fill a message each."""
        return _parts(num_pieces, LONGEST if self.threshold is None else LONGEST // 16)

    def _pack(self, pieces):
        """Return 16-bit pieces as float32 numbers to push; with compression, bit by bit."""
        if self.threshold is None:
            return pieces.astype(np.float32)
        return np.unpackbits(pieces.view(np.uint8), bitorder="little") * self.threshold

    def _unpack(self, numbers):
        """Return the pieces that :meth:`_pack` has packed, or their sum."""
        if self.threshold is None:
            return numbers.astype(np.uint16)
        counts = np.rint(numbers / self.threshold)
        return (counts.reshape(-1, 16) @ 2 ** np.arange(16)).astype(np.uint16)

    def _keys_for_all(self, length):
        """Return the first of ``count`` keys for vectors of this length.

        Two sets are used in turn: a slow worker may still pull what the last exchange left in the
        other one. No worker can be two exchanges behind: the barrier between waits for all.
        """
        if not self._replaces:
            return self._take_keys(self.count)
        if length not in self._keys:
            self._keys[length] = [self._take_keys(self.count), self._take_keys(self.count)]
        self._keys[length].reverse()
        return self._keys[length][0]

    def _take_keys(self, number):
        """Reserve so many keys; return the first."""
        first = self._next_key
        self._next_key += number
        if self._next_key > LAST_KEY + 1:
            reason = f"no keys left: ps-lite takes them up to {LAST_KEY}"
            if self._is_async and not self._replaces:
                reason += ", and dist_async takes new ones for each exchange; use dist_sync"
            raise RuntimeError(reason)
        return first


class TrainerKeys:
    """The keys of a store for Trainers: from 0 on, below those of the collectives."""

    def __init__(self):
        self._next = 0

    def __call__(self, number):
        """Reserve so many keys; return the first."""
        first, self._next = self._next, self._next + number
        if self._next >= FIRST_KEY:  # the last one counts updates: server_optimizer.py
            raise RuntimeError(f"no keys left for Trainers: they take those below {FIRST_KEY}")
        return first


def _parts(length, longest):
    """Return the slices that cut a vector into parts of at most ``longest`` numbers."""
    return [slice(start, min(start + longest, length)) for start in range(0, length, longest)]


def _filled_up(values):
    """Return a float32 vector with zeros behind it, to one of few lengths."""
    length = max(SHORTEST, 1 << (len(values) - 1).bit_length())
    filled = np.zeros(length, np.float32)
    filled[: len(values)] = values
    return filled


def _pieces_of(values):
    """Return the bytes of an array as 16-bit pieces, shape (n,)."""
    content = np.ascontiguousarray(values).reshape(-1).view(np.uint8)
    return np.append(content, np.zeros(content.size % 2, np.uint8)).view(np.uint16)


def _from_pieces(pieces, shape, dtype):
    """Return the array of which these are the pieces; several rows are of several arrays."""
    values = np.empty(shape, dtype)
    content = values.reshape(*pieces.shape[:-1], -1).view(np.uint8)
    content[:] = pieces.view(np.uint8)[..., : content.shape[-1]]
    return values


class OneWorker:
    """The operations of a single worker."""

    rank, count, threshold = 0, 1, None

    def __init__(self):
        self.take_trainer_keys = TrainerKeys()

    def all_reduce(self, values):
        """Return the values."""
        return values

    def all_gather(self, values):
        """Return the values as the one row."""
        return values[None]

    all_gather_alone = all_gather

    def broadcast(self, values, root=0):
        """Return the values."""
        return values

    def note_compression(self, threshold):
        """Take note that the store quantises from now on."""
        self.threshold = np.float32(threshold)

    def note_server_optimizer(self):
        """Do nothing: nothing is pushed here."""

    def barrier(self):
        """Wait until all that is queued is computed."""
        mx.nd.waitall()

    def shared_flag(self):
        """Return the flag of this worker."""
        return OwnFlag()
