"""All distributed stores of a process have one connection to the servers, and keys of their own."""

import functools
import sys

from gluon_dist.setup import environment
from gluon_dist.setup.exceptions import Refused

BLOCK = 2_500  # keys for the numbers of a store; the next block is for its texts
MOST = 20  # stores in a process
OWN = 2 * MOST * BLOCK  # from here on keys are those of collectives.py
KEYED = ("init", "broadcast", "push", "pull", "pushpull", "row_sparse_pull")
ASYNC = ("dist_async", "dist_device_async", "dist_async_device")


def share_connection(mxnet):
    """Let a process make several distributed stores, and several Trainers on one of them.

    MXNet has one connection to the servers, with one optimizer. A second
    ``mx.kv.create("dist_sync")`` waits for ever, and so does a store with numbers and texts for
    keys. Two Trainers on a store take the same keys. Here each has its own.
    """
    store_class, trainer_class = mxnet.kvstore.KVStore, mxnet.gluon.Trainer
    made = []

    class SharedStore(store_class):
        """A store with the connection of the first one."""

        def __init__(self):
            self.first, self.number = made[0], len(made)
            if self.number == MOST:
                raise Refused(f"more than {MOST} distributed stores in a process: use one again")
            made.append(self)
            self.handle, self._is_p3 = self.first.handle, self.first._is_p3
            self._updater = self._updater_func = self._str_updater_func = None

        def __del__(self):
            """Leave the connection open."""

    create = mxnet.kvstore.create

    @functools.wraps(create)
    def create_or_share(name="local"):
        kind = name.lower() if isinstance(name, str) else ""
        if not kind.startswith("dist"):
            return create(name)
        if environment.num_servers() == 0:  # the scheduler is Horovod's, and would never answer
            raise Refused("-s 0 is for Horovod: this program needs servers")
        if not made:
            made.append(create(name))
            return made[0]
        if (kind in ASYNC) != ("async" in made[0].type):
            raise Refused(
                f"{name}: this process has a store of kind {made[0].type}: its servers are of one "
                "kind, so use that for all"
            )
        return SharedStore()

    def numbered(call, is_first):
        @functools.wraps(call)
        def call_numbered(self, key, *args, **kwargs):
            if "dist" in self.type:
                key = numbers_of(self, key, is_first)
            return call(self, key, *args, **kwargs)

        return call_numbered

    init_kvstore = trainer_class._init_kvstore

    @functools.wraps(init_kvstore)
    def init_own_kvstore(self):
        store = self._kvstore_params["kvstore"]
        if isinstance(store, str):
            store = create_or_share(store) if store.lower().startswith("dist") else None
        # Not the store of the program itself, and not for Trainers that choose their keys.
        is_first = isinstance(store, store_class) and store in made[:1]
        if is_first and not hasattr(self, "exchange") and len(self._params) <= BLOCK:
            store = SharedStore()
        if isinstance(store, store_class):
            self._kvstore_params["kvstore"] = store
        init_kvstore(self)

    store_class.number = 0
    for name in KEYED:
        setattr(store_class, name, numbered(getattr(store_class, name), name in KEYED[:2]))
    for module in (mxnet.kvstore, mxnet.kvstore.base, mxnet.kvstore.kvstore_server):
        module.create = create_or_share
    trainer_class._init_kvstore = init_own_kvstore


def numbers_of(store, key, is_first):
    """Return the keys that the servers know for the keys of a store."""
    if isinstance(key, (list, tuple)):
        return [numbers_of(store, each, is_first) for each in key]
    texts = vars(store).setdefault("texts", {})
    if isinstance(key, str):
        if is_first:
            texts.setdefault(key, len(texts))
        if key not in texts:
            error = sys.modules["mxnet"].MXNetError  # as of other stores: a program may catch it
            raise error(f"{key!r}: no such key in this store: init it first, on all workers")
        return (2 * store.number + 1) * BLOCK + texts[key]
    if store.number and not 0 <= key < BLOCK:
        raise Refused(f"key {key}: a process's second store has keys from 0 to {BLOCK - 1}")
    return 2 * store.number * BLOCK + key


def place_of(number):
    """Return the store that a key is of, None for those of collectives, and its number there."""
    return divmod(number, 2 * BLOCK) if number < OWN else (None, number)
