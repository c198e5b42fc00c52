"""Several Trainers on one store, which can be created only once."""

from gluon_dist.exchange.server_optimizer import COUNTER_KEY

import mxnet as mx


class Shifted(mx.kvstore.KVStore):
    """The same store with other keys: every Trainer counts its own from 0.

    Parameters
    ----------
    store : mxnet.kvstore.KVStore
        Must live on.
    number : int
        Of the Trainer.
    """

    def __init__(self, store, number):
        super().__init__(store.handle)
        self._first = 1000 * number

    def __del__(self):
        """The handle is the other's."""

    def init(self, key, value):
        if key != COUNTER_KEY or self._first == 0:
            super().init(self._shift(key), value)

    def broadcast(self, key, value, out, priority=0):
        super().broadcast(self._shift(key), value, out, priority)

    def push(self, key, value, priority=0):
        super().push(self._shift(key), value, priority)

    def pull(self, key, out=None, priority=0, ignore_sparse=True):
        super().pull(self._shift(key), out, priority, ignore_sparse)

    def pushpull(self, key, value, out=None, priority=0):
        super().pushpull(self._shift(key), value, out, priority)

    def _shift(self, key):
        return key if key == COUNTER_KEY else key + self._first
