"""All distributed stores of a process have one connection to the servers, and keys of their own."""

import functools
import sys

from gluon_dist.setup import environment
from gluon_dist.setup.exceptions import Refused

# The keys of the servers: numbers of the first store, its texts; then those of further stores.
TEXTS, SECOND = 40_000, 50_000
BLOCK = 1_250  # numbers of another store; as many are for its texts
MOST = 21  # stores in a process
LAST_KEY = 215_327  # ps-lite multiplies keys by 9973 in 32 bits
OWN = SECOND + 2 * (MOST - 1) * BLOCK  # from one below on keys are gluon_dist's own
KEYED = ("init", "broadcast", "push", "pull", "pushpull", "row_sparse_pull")
COMPRESSED = (
    "this store has the connection of one that compresses: what it pushes would be compressed, "
    "too; use that store alone, or train without compression"
)
SPARSE = (
    "servers lose the rows of row_sparse values that they only add up: give them an optimizer, "
    "set_optimizer, or push dense values"
)
ALONE = "dist_async keeps the last push only: give this store an optimizer, set_optimizer"
ASYNC = ("dist_async", "dist_device_async", "dist_async_device")


def share_connection(mxnet):
    """Let a process make several distributed stores, and several Trainers on one of them.

    MXNet has one connection to the servers, with one optimizer. A second
    ``mx.kv.create("dist_sync")`` waits for ever, and so does a store with numbers and texts for
    keys. Two Trainers on a store take the same keys. Here each has its own.
    """
    store_class, trainer_class = mxnet.kvstore.KVStore, mxnet.gluon.Trainer
    store_class.number, store_class.compressing = 0, None
    store_class.set_gradient_compression = _noted(store_class)
    for name in KEYED:
        call = getattr(store_class, name)
        if "push" in name:
            call = _allowed(call)
        setattr(store_class, name, _numbered(call, name in KEYED[:2]))
    made = []  # the distributed stores of this process; the first has the connection
    shared_class = _shared_class(store_class, made)
    create = _sharing(mxnet.kvstore.create, shared_class, made)
    for module in (mxnet.kvstore, mxnet.kvstore.base, mxnet.kvstore.kvstore_server):
        module.create = create
    trainer_class._init_kvstore = _with_own_store(
        trainer_class._init_kvstore, create, shared_class, made
    )


class OwnCalls:
    """A store for calls of our own: keys of any size, and no copies of what is pushed.

    The program's calls of the same store keep their checks and copies.

    Parameters
    ----------
    store : mxnet.kvstore.KVStoreBase
    """

    def __init__(self, store):
        self._store = store

    def __getattr__(self, name):
        found, store = getattr(self._store, name), self._store
        if name not in KEYED:
            return found

        def call(*args, **kwargs):
            before, store.may_overwrite = getattr(store, "may_overwrite", False), True
            try:
                return found(*args, **kwargs)
            finally:
                store.may_overwrite = before

        return call


def _shared_class(store_class, made):
    """Return the class of further distributed stores, which notes each in ``made``."""

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

    return SharedStore


def _sharing(create, shared_class, made):
    """Return ``mx.kv.create``, which connects the first distributed store only."""

    @functools.wraps(create)
    def create_or_share(name="local"):
        kind = name.lower() if isinstance(name, str) else ""
        if not kind.startswith("dist"):
            return create(name)
        if environment.num_servers() == 0:  # the scheduler is Horovod's, and would never answer
            raise Refused("-s 0 is for Horovod: this program needs servers")
        if "async" not in kind and "sync" not in kind:
            name = kind.replace("dist", "dist_sync", 1)  # the same, but Module looks for the name
        if not made:
            made.append(create(name))
            return made[0]
        if (kind in ASYNC) != ("async" in made[0].type):
            raise Refused(
                f"{name}: this process has a store of kind {made[0].type}: its servers are of one "
                "kind, so use that for all"
            )
        return shared_class()

    return create_or_share


def _with_own_store(init_kvstore, create, shared_class, made):
    """Return ``Trainer._init_kvstore``, which takes a store for this Trainer alone."""
    store_class = shared_class.__mro__[1]

    @functools.wraps(init_kvstore)
    def init_own_kvstore(self):
        store = self._kvstore_params["kvstore"]
        taken = made  # not a store that the program itself has, or asks for
        if isinstance(store, str):
            store, taken = create(store) if store.lower().startswith("dist") else None, made[:1]
        # Trainers that choose their keys need no other.
        if store in taken and not hasattr(self, "exchange") and len(self._params) <= BLOCK:
            store = shared_class()
        if isinstance(store, store_class):
            self._kvstore_params["kvstore"] = store
        init_kvstore(self)

    return init_own_kvstore


def _numbered(call, is_first):
    """Return a method of a store that calls the servers by their own keys."""

    @functools.wraps(call)
    def call_numbered(self, key, *args, **kwargs):
        if "dist" in self.type:
            key = numbers_of(self, key, is_first)
        return call(self, key, *args, **kwargs)

    return call_numbered


def _allowed(call):
    """Return a push that refuses arrays which the servers would change."""

    @functools.wraps(call)
    def call_allowed(self, key, value, *args, **kwargs):
        if self.compressing is not None and self.compressing is not self:
            raise Refused(COMPRESSED)
        if not (hasattr(self, "optimizer_of_servers") or self.may_overwrite):
            if "async" in self.type:
                raise Refused(ALONE)
            if _is_row_sparse(value):
                raise Refused(SPARSE)
        return call(self, key, value, *args, **kwargs)

    return call_allowed


def _noted(store_class):
    """Return ``set_gradient_compression``; ``compressing`` is the first store that called it."""
    compress = store_class.set_gradient_compression

    @functools.wraps(compress)
    def compress_and_note(self, compression_params):
        if store_class.compressing is None:
            store_class.compressing = self
        compress(self, compression_params)

    return compress_and_note


def numbers_of(store, key, is_first):
    """Return the keys that the servers know for the keys of a store.

    Each is begun once, by all workers. MXNet would take a second time for another worker's push.
    """
    if isinstance(key, (list, tuple)):
        return [numbers_of(store, each, is_first) for each in key]
    begun = vars(store).setdefault("begun", {})
    is_own = store.may_overwrite and not isinstance(key, str) and key >= OWN - 1
    if is_first and key not in begun:
        begun[key] = key if is_own else _number(store.number, key, begun)
        return begun[key]
    if is_own or (key in begun and not is_first):
        return begun.get(key, key)
    error = sys.modules["mxnet"].MXNetError  # as of other stores: a program may catch it
    if is_first:
        raise error(f"duplicate init of key {key!r}: init or broadcast it once in a store")
    raise error(f"{key!r}: no such key in this store: init it first, on all workers")


def _is_row_sparse(value):
    if isinstance(value, (list, tuple)):
        return any(map(_is_row_sparse, value))
    return value.stype == "row_sparse"


def _number(store, key, begun):
    """Return the number of a store's next key."""
    start = SECOND + 2 * (store - 1) * BLOCK if store else 0
    first, most = (TEXTS, SECOND - TEXTS) if not store else (BLOCK, BLOCK)
    if isinstance(key, str):
        texts = sum(isinstance(each, str) for each in begun)
        if texts == most:
            raise Refused(f"key {key!r}: a process's {_which(store)} store takes {most} texts")
        return start + first + texts
    if not 0 <= key < first:
        raise Refused(f"key {key}: a process's {_which(store)} store takes 0 to {first - 1}")
    return start + key


def _which(store):
    return "later" if store else "first"


def texts_from(store):
    """Return the index, for its optimizer, of a store's first text."""
    return BLOCK if store else TEXTS


def place_of(number):
    """Return the store to which a key belongs (None: collectives) and its index there."""
    if number < SECOND:
        return 0, number
    if number >= OWN:
        return None, number
    store, index = divmod(number - SECOND, 2 * BLOCK)
    return store + 1, index
