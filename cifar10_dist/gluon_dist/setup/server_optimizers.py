"""Servers that update the weights with a copy of an optimizer: the copy follows the original."""

import contextlib
import functools
import operator
import pickle
import weakref
from numbers import Number

from gluon_dist.setup.patches import cloudpickle
from gluon_dist.setup.shared_store import place_of, texts_from

CONTROL, MULTI_PRECISION = 0, 1  # what a worker's command to the servers is about: kvstore.py
COUNTERS = ("num_update", "begin_num_update")  # which the servers count for themselves
FACTORS = ("lr_mult", "wd_mult")
# Sent by a command of its own, or internal to MXNet.
APART = (
    *("lr_scheduler", "param_dict", "idx2name", "sym_info", *FACTORS),
    *("_index_update_count", "_all_index_update_counts"),
)


def keep_servers_up_to_date(mxnet):
    """Tell servers that update what changes in the optimizer: rate, decay, batch size, factors.

    MXNet sends them a copy at the start, without the parameters' ``lr_mult`` and ``wd_mult``. A
    later ``set_learning_rate`` has no effect then, and ``step`` with another batch size is refused.
    Here a change acts from the next step on, for every key; momentum and the like are kept. With
    ``dist_async`` changes are those of worker 0, but each push is divided by its own batch size.
    """
    store_class, optimizer_class = mxnet.kvstore.KVStore, mxnet.optimizer.Optimizer
    originals = Originals(mxnet)
    set_optimizer, read_rate = store_class.set_optimizer, optimizer_class.learning_rate.fget

    @functools.wraps(set_optimizer)
    def set_and_follow(self, optimizer):
        if "dist" not in self.type:
            return set_optimizer(self, optimizer)
        originals.send(self, optimizer)

    def with_changes(push):
        @functools.wraps(push)
        def send_changes_and_push(self, key, *args, **kwargs):
            if hasattr(self, "optimizer_of_servers"):
                originals.send_changes(self, key)
                if "async" not in self.type:  # else the servers' number is that of all workers
                    self.optimizer_of_servers._update_count(key)  # for who reads the rate
            return push(self, key, *args, **kwargs)

        return send_changes_and_push

    def read_rate_unchanged(self):
        return originals.read_unchanged(self, read_rate)

    def rescale(self, scale):
        first = self._optimizer.rescale_grad
        if "async" not in getattr(self._kvstore, "type", "") or not self._kv_initialized:
            self._optimizer.rescale_grad = scale
        elif scale != first:  # of this worker's batch only: the servers keep that of the first
            for param in (p for p in self._params if p.grad_req != "null"):
                for grad in param.list_grad():
                    grad *= scale / first

    store_class.set_optimizer = set_and_follow
    store_class.push = with_changes(store_class.push)
    store_class.pushpull = with_changes(store_class.pushpull)
    optimizer_class.learning_rate = property(read_rate_unchanged, doc=read_rate.__doc__)
    mxnet.gluon.Trainer._check_and_rescale_grad = rescale


class Originals:
    """The optimizers of this worker whose copies servers have, and the state of these copies."""

    def __init__(self, mxnet):
        self._mxnet, self._known = mxnet, weakref.WeakKeyDictionary()

    def send(self, store, optimizer):
        """Send an optimizer to the servers of a store."""
        self._known[optimizer] = found = settings(optimizer)
        store.optimizer_of_servers = optimizer
        store.compared, store.seen = set(), []
        changes = {name: found[name] for name in FACTORS}
        first, names = texts_from(store.number), optimizer.idx2name  # of the n-th text as a key
        changes["idx2name"] = {**names, **{first + n: name for n, name in names.items()}}
        self._command(store, optimizer=optimizer, changes=changes)
        if optimizer.multi_precision:
            store._send_command_to_servers(MULTI_PRECISION, "")

    def send_changes(self, store, key):
        """Send what has changed: all attributes are compared once a step."""
        optimizer = store.optimizer_of_servers
        if hasattr(optimizer, "takes_all_keys"):  # sent once: a later one would count anew
            return
        keys = key if isinstance(key, (list, tuple)) else [key]
        seen = [value for _, _, value in _attributes(optimizer)]
        is_seen = len(seen) == len(store.seen) and all(map(operator.is_, seen, store.seen))
        if is_seen and store.compared.isdisjoint(keys):
            store.compared.update(keys)
            return
        if "async" not in store.type:  # a scheduler counts the steps of all keys together
            for array in [a for each in vars(store).get("unsettled", {}).values() for a in each]:
                array.wait_to_read()
        store.compared, store.seen = set(keys), seen
        now, before = settings(optimizer), self._known[optimizer]
        changed = {k: v for k, v in now.items() if k not in before or before[k] != v}
        if not changed:
            return
        before.update(changed)
        if "async" not in store.type:
            self._mxnet.nd.waitall()  # now all servers have made the last step, and none the next
        if store.rank == 0:
            content = {k: v.value if type(v) is Content else v for k, v in changed.items()}
            self._command(store, optimizer=None, changes=content)

    def read_unchanged(self, optimizer, read_rate):
        """Return the rate. What a scheduler changes in itself here is not taken for a change."""
        if optimizer not in self._known or optimizer.lr_scheduler is None:
            return read_rate(optimizer)
        before = settings(optimizer)
        rate = read_rate(optimizer)
        sent, now = self._known[optimizer], settings(optimizer)
        sent.update((k, v) for k, v in now.items() if sent.get(k) == before.get(k))
        return rate

    def _command(self, store, **content):
        content["store"] = store.number
        text = self._mxnet.kvstore.kvstore.pickle.dumps(content, 0).decode()
        store._send_command_to_servers(CONTROL, text)


def settings(optimizer):
    """Return all that an optimizer and its scheduler have, by the names of their attributes."""
    found = {"lr_scheduler": optimizer.lr_scheduler}
    for prefix, name, value in _attributes(optimizer):
        is_plain = value is None or isinstance(value, (Number, str))
        if is_plain or name not in APART:
            found[prefix + name] = value if is_plain else Content(value)
    for name in FACTORS:
        of_params = {key: getattr(param, name) for key, param in optimizer.param_dict.items()}
        found[name] = {**getattr(optimizer, name), **of_params}
    return found


class Copies:
    """A server's copies of optimizers, one for each store of the workers.

    Parameters
    ----------
    mxnet : module
    store : mxnet.kvstore.KVStore
        The server's own.
    """

    def __init__(self, mxnet, store):
        self._mxnet, self._store = mxnet, store
        self._updaters, self._takes_all = {}, False
        store._set_updater(self._update)

    def take(self, store, optimizer, changes):
        """Take a worker's message: an optimizer (None: the present one), and changes of it."""
        if optimizer is not None:
            self._updaters[store] = self._mxnet.optimizer.get_updater(optimizer)
            self._takes_all = hasattr(optimizer, "takes_all_keys")
        copy = self._updaters[store].optimizer
        for name, value in changes.items():
            owner, _, attribute = name.rpartition(".")
            setattr(getattr(copy, owner) if owner else copy, attribute, value)

    def _update(self, key, grad, weight):
        """Update the value of a key, or replace it if no optimizer is for this key."""
        store, index = place_of(key)
        if self._takes_all:
            store, index = 0, key
        if store in self._updaters:
            self._updaters[store](index, grad, weight)
        else:
            grad.copyto(weight)


class Content:
    """A copy of a list, an array or an object that equals one with the same content."""

    def __init__(self, value):
        self.value, self._text = value, None  # what nothing can send stays as it is
        with contextlib.suppress(Exception):
            try:
                self._text = pickle.dumps(value)
            except Exception:
                self._text = cloudpickle.dumps(value)

    def __eq__(self, other):
        return isinstance(other, Content) and self._text == other._text


def _attributes(optimizer):
    """Return (prefix, name, value) of each attribute of an optimizer and its scheduler."""
    owners = [("", optimizer), ("lr_scheduler.", optimizer.lr_scheduler)]
    pairs = [(p, vars(owner).items()) for p, owner in owners if owner is not None]
    return [(p, name, value) for p, items in pairs for name, value in items if name not in COUNTERS]
