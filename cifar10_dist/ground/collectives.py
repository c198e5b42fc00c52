"""Collective operations between workers, made of a kvstore's ``init``, ``push`` and ``pull``.

What a Trainer does for gradients is done here for other numbers. MXNet has no such operations.
"""

import mxnet as mx
import numpy as np

from ground.failure import UsageError
from ground.shared_flag import OwnFlag, SharedFlag

FIRST_KEY = 100_000  # above the keys of any Trainer, which count from 0
LAST_KEY = 215_327  # ps-lite multiplies keys by 9973 in 32 bits


class Collectives:
    """All-reduce, all-gather and broadcast of small vectors; all workers make the same calls.

    Parameters
    ----------
    store : mxnet.kvstore.KVStore
        Of a type that begins with ``dist``, with any number of workers.

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

    def note_compression(self, threshold):
        """Take note that the store quantises from now on."""
        self.threshold = np.float32(threshold)
        self._keys = {}  # a key keeps the message format of its first use

    def note_server_optimizer(self):
        """Take note that the servers of ``dist_async`` now have a ``CountingOptimizer``.

        It replaces what is under these keys by what is pushed. Before, each exchange needs fresh
        keys, as a server without an optimizer takes no second push.
        """
        self._replaces = True

    def all_reduce(self, values):
        """Add up a float32 vector over all workers, in float32."""
        if self.threshold is not None:
            return self.all_gather(values).sum(axis=0)
        return self._add_up(values)

    def all_gather(self, values):
        """Give every worker the vectors of all, bit for bit, shape (workers, n).

        MXNet's servers may keep float64 as float32: the flag that decides it is never initialised
        (``multi_precision_`` in kvstore_dist_server.h). So each number travels as 16-bit pieces,
        which float32 holds exactly, in a slot where all other workers add zero.
        """
        pieces = np.ascontiguousarray(values).ravel().view(np.uint16)
        slots = np.zeros((self.count, pieces.size), np.uint16)
        slots[self.rank] = pieces
        return self._sum_pieces(slots).view(values.dtype)

    def all_gather_alone(self, values):
        """Give every worker the float32 vectors of all, also if their stores are of other types.

        Each pushes to a key of its own, under which a server stores it as it is, and pulls all.
        """
        first = self._keys_for_all(len(values))
        self._store.push(first + self.rank, mx.nd.array(values))
        self.barrier()
        rows = [mx.nd.zeros(len(values)) for _ in range(self.count)]
        for rank, row in enumerate(rows):
            self._store.pull(first + rank, out=row)
        return [row.asnumpy() for row in rows]

    def broadcast(self, values):
        """Give every worker the float32 vector of worker 0, bit for bit; all are of one length.

        A key's first value is neither added up nor quantised by the servers.
        """
        key, buffer = self._take_keys(1), mx.nd.array(values, dtype="float32")
        self._store.init(key, buffer)  # worker 0's counts; the others wait for it
        self._store.pull(key, out=buffer)
        return buffer.asnumpy()

    def barrier(self):
        """Wait until all workers have come here and what they pushed is on the servers."""
        mx.nd.waitall()
        self._store._barrier()

    def shared_flag(self):
        """Make a flag that any worker raises and all see."""
        return SharedFlag(self._store, self._take_keys(1))

    def _add_up(self, values):
        """Add up float32 vectors by the way that the store has."""
        if self._is_async:
            return np.sum(self.all_gather_alone(values), axis=0)
        return self._checked(self.push_pull(np.append(values, self.threshold or np.float32(1))))

    def push_pull(self, values):
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
            The servers have made something else of it.
        """
        if not abs(total[-1] / (self.threshold or 1) - self.count) < 1e-3:
            raise UsageError(
                "the servers do not add up what the workers push: create the Trainer with "
                "update_on_kvstore=False, and without compression_params"
            )
        return total[:-1]

    def _sum_pieces(self, pieces):
        """Add up 16-bit whole numbers; no sum may exceed 16 bits."""
        if self.threshold is None:
            total = self._add_up(pieces.ravel().astype(np.float32))
            return total.astype(np.uint16).reshape(pieces.shape)
        bits = np.unpackbits(pieces.view(np.uint8).ravel(), bitorder="little")
        counts = np.rint(self._add_up(bits * self.threshold) / self.threshold)
        return (counts.reshape(pieces.shape + (16,)) @ 2 ** np.arange(16)).astype(np.uint16)

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
        first = self._next_key
        self._next_key += number
        if self._next_key > LAST_KEY + 1:
            raise RuntimeError(f"no keys left: ps-lite takes them up to {LAST_KEY}")
        return first


class OneWorker:
    """The same operations without other workers."""

    rank, count, threshold = 0, 1, None

    def all_reduce(self, values):
        """Return the values."""
        return values

    def all_gather(self, values):
        """Return the values as the one row."""
        return values[None]

    all_gather_alone = all_gather

    def broadcast(self, values):
        """Return the values."""
        return values

    def note_compression(self, threshold):
        """Do nothing: nothing is pushed here."""

    def note_server_optimizer(self):
        """Do nothing: nothing is pushed here."""

    def barrier(self):
        """Wait until all that is queued is computed."""
        mx.nd.waitall()

    def shared_flag(self):
        """Make a flag that this worker alone raises."""
        return OwnFlag()
