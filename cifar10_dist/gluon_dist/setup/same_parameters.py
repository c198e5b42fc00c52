"""A comparison of the parameters of all workers, before a Trainer first exchanges them."""

import collections
import functools
import hashlib
import json
import re

from gluon_dist.setup.exceptions import Refused
from gluon_dist.setup.shared_store import LAST_KEY, OwnCalls

PARAMETERS = (
    "the Trainer's parameter {} is {} on worker 0, but {} on worker {}. MXNet adds up the "
    "gradients of the n-th parameters: build the network alike on all workers, with names that do "
    "not depend on chance (prefix=)"
)
TEXTS = (
    "key {1!r} is begun on worker 0, but {2!r} on worker {3}: MXNet counts texts that are keys, so "
    "begin them in the same order on all workers"
)


def compare_parameters(mxnet):
    """Refuse a Trainer whose n-th parameter has another name or shape on another worker.

    A Trainer sorts parameters by name, and MXNet adds up gradients by their places. Where names
    come from chance, a parameter is trained with the gradients of another.
    """
    store_class, trainer_class = mxnet.kvstore.KVStore, mxnet.gluon.Trainer
    comparison = Comparison(mxnet)
    init_kvstore = trainer_class._init_kvstore

    @functools.wraps(init_kvstore)
    def init_and_compare(self):
        init_kvstore(self)
        if self._distributed and isinstance(self._kvstore, store_class):
            forms = [f" {p.shape} {p.dtype}" for p in self._params]
            names = [p.name for p in self._params]
            alike = map("".join, zip(without_counts(names), forms))
            shown = map("".join, zip(names, forms))
            comparison.compare(self._kvstore, list(alike), list(shown), PARAMETERS)

    def with_same_texts(call):
        @functools.wraps(call)
        def call_with_same_texts(self, key, *args, **kwargs):
            keys = key if isinstance(key, (list, tuple)) else [key]
            texts = [each for each in keys if isinstance(each, str)]
            if texts and "dist" in self.type:
                comparison.compare(self, texts, texts, TEXTS)
            return call(self, key, *args, **kwargs)

        return call_with_same_texts

    store_class.init = with_same_texts(store_class.init)
    store_class.broadcast = with_same_texts(store_class.broadcast)
    trainer_class._init_kvstore = init_and_compare


class Comparison:
    """Compares lists of texts over all workers, by messages under keys of its own."""

    def __init__(self, mxnet):
        self._mxnet, self._next_key = mxnet, LAST_KEY + 1

    def compare(self, store, alike, shown, different):
        """Raise Refused with the first item that differs on another worker."""
        if store.compressing is not None:  # what is pushed does not arrive as it is
            return
        if store.num_workers == 1 or store._is_p3:  # P3 pushes later
            return
        own = json.dumps([alike, shown]).encode()
        digest = hashlib.sha256("\n".join(alike).encode()).digest()
        rows = self._gather(store, [len(own), *digest], 1 + len(digest))
        if all(row[1:] == rows[0][1:] for row in rows):
            return
        texts = self._gather(store, own, max(row[0] for row in rows))
        known = [json.loads(bytes(text[: row[0]])) for text, row in zip(texts, rows)]
        for worker, (found, shown) in enumerate(known):
            for n in range(max(len(found), len(known[0][0]))):
                if found[n : n + 1] != known[0][0][n : n + 1]:
                    first, other = (" ".join(each[n : n + 1]) for each in (known[0][1], shown))
                    raise Refused(different.format(n, first or "none", other or "none", worker))

    def _gather(self, store, values, length):
        """Return the whole numbers (below 2**24) of all workers, padded with zeros."""
        store = OwnCalls(getattr(store, "first", store))  # only that one has keys of any size
        count, nd = store.num_workers, self._mxnet.nd
        self._next_key -= count
        filled = nd.array([*values, *[0] * (length - len(values))], dtype="float32")
        store.push(self._next_key + store.rank, filled)  # a first push is stored as it is
        nd.waitall()
        store._barrier()
        rows = [nd.zeros(length) for _ in range(count)]
        for n, row in enumerate(rows):
            store.pull(self._next_key + n, out=row)
        return [row.asnumpy().astype(int).tolist() for row in rows]


def without_counts(names):
    """Return names whose numbers are replaced by their ranks: dense4, dense7 by dense0, dense1.

    A worker that has made one more network before counts from another number on: its dense4, dense5
    are dense0, dense1 elsewhere. But sorted by name, dense10 comes before dense9.
    """
    names, numbers = list(names), collections.defaultdict(set)
    for name in names:
        for found in re.finditer(r"\d+", name):
            numbers[name[: found.start()]].add(int(found[0]))

    def place(found):
        return str(sorted(numbers[found.string[: found.start()]]).index(int(found[0])))

    return [re.sub(r"\d+", place, name) for name in names]
