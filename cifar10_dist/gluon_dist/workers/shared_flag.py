"""A flag that any worker raises and all workers see, without waiting for each other."""

import mxnet as mx

RAISED = 1e6  # any gradient compression still sends something for it


class SharedFlag:
    """A flag that any worker raises and all workers see one exchange later.

    In ``dist_sync`` all workers push a number in each step and pull the sum: the same on all of
    them. In ``dist_async`` there are no common steps: the worker that raises the flag replaces the
    zero under a key, and all workers pull that key after each step.

    Parameters
    ----------
    store : mxnet.kvstore.KVStore
        Of a type that begins with ``dist``.
    key : int
        One that nothing else uses.
    """

    def __init__(self, store, key):
        self._store, self._key, self._is_async = store, key, "async" in store.type
        self._own, self._sum = mx.nd.zeros(1), mx.nd.zeros(1)
        store.init(key, self._sum)

    def exchange(self, is_raised):
        """Send this worker's flag; return whether the exchange before showed it raised."""
        was_raised = self._sum.asscalar() != 0  # arrived long ago; a push before it did is wrong
        if is_raised:
            self._own[:] = RAISED
        if is_raised or not self._is_async:
            self._store.push(self._key, self._own, priority=1)
        self._store.pull(self._key, out=self._sum, priority=1)
        return was_raised


class OwnFlag:
    """The flag of a single worker."""

    def exchange(self, is_raised):
        """Return what is passed."""
        return is_raised
