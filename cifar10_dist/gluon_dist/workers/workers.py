"""What workers exchange besides gradients: counts, statistics, settings that must agree."""

import json
import time

from gluon_dist.common.errors import UsageError
from gluon_dist.setup.environment import uses_p3
from gluon_dist.setup.shared_store import OwnCalls
from gluon_dist.workers.collectives import Collectives, OneWorker

import numpy as np

OTHERS_WAIT_S = 5  # until they repeat worker 0's error; by then a launcher has ended them


class Workers:
    """All workers of a job, from the side of one of them. All make the same calls.

    Parameters
    ----------
    store : mxnet.kvstore.KVStore
        Any type; on one that is not distributed there is one worker.
    """

    def __init__(self, store):
        self.store, self.own_store = store, OwnCalls(store)  # the program's, and for our calls
        self.rank, self.count = store.rank, store.num_workers
        self.store_type, self.is_async = store.type, "async" in store.type
        if not hasattr(store, "gluon_dist"):  # two of them would take the same keys
            several = store.num_workers > 1
            store.gluon_dist = Collectives(self.own_store) if several else OneWorker()
        self.collectives = store.gluon_dist
        self.take_keys = self.collectives.take_trainer_keys

    def all_reduce(self, values):
        """Return the sum of a vector over all workers.

        Parameters
        ----------
        values : array_like of float, shape (n,)

        Returns
        -------
        ndarray of float64, shape (n,)
            Added in the order of the ranks: the same on every worker to the last bit, and exact
            for whole numbers up to 2**53. A float32 array is added up in float32 instead, in the
            order in which it arrives: less traffic, and still the same on every worker.
        """
        if getattr(values, "dtype", None) == np.float32:
            return self.collectives.all_reduce(values)
        return self.all_gather(values).sum(axis=0)

    def all_gather(self, values):
        """Return the vectors of all workers, float64, shape (workers, n)."""
        return self.collectives.all_gather(np.asarray(values, np.float64))

    def all_gather_int(self, number):
        """Return the whole numbers of all workers, a list in the order of the ranks."""
        return self.all_gather([number]).ravel().astype(int).tolist()

    def broadcast(self, content):
        """Return the bytes of worker 0; what other workers pass is not used."""
        if self.count == 1:
            return content
        size = int(self.collectives.broadcast(np.array([len(content or b"")]))[0])
        own = content if self.rank == 0 else bytes(size)
        return self.collectives.broadcast(np.frombuffer(own, np.uint8)).tobytes()

    def all_gather_texts(self, text):
        """Return the texts of all workers, in the order of the ranks."""
        content = text.encode()
        longest = int(self.all_gather([len(content)]).max())
        rows = self.collectives.all_gather(np.frombuffer(content.ljust(longest), np.uint8))
        return [row.tobytes().decode().rstrip(" ") for row in rows]

    def barrier(self):
        """Wait until all workers have come here and what they pushed is on the servers."""
        self.collectives.barrier()

    def agree(self, facts):
        """Raise if the workers were not started with the same facts.

        Parameters
        ----------
        facts : dict of str to str
            Values that must be equal, by name: options, data, versions.

        Raises
        ------
        UsageError
            With the first fact that differs, its values and the workers that have them. Worker 0
            raises at once, the other workers later: so the job ends with one message.
        """
        everyone = self._gather_facts(facts)
        for name in sorted(set().union(*everyone)):
            holders = {}
            for rank, other in enumerate(everyone):
                holders.setdefault(other.get(name, "absent"), []).append(str(rank))
            if len(holders) > 1:
                found = ", ".join(f"{v} on worker {', '.join(r)}" for v, r in holders.items())
                if self.rank:
                    time.sleep(OTHERS_WAIT_S)
                raise UsageError(
                    f"the workers differ in {name}: {found}; start all with the same program, "
                    "options and data"
                )

    def _gather_facts(self, facts):
        """Return the facts of all workers, even if their kinds of store differ."""
        gather = self.collectives.all_gather_alone
        if self.collectives.threshold is not None or uses_p3():  # P3 numbers keys as they come
            gather = self.collectives.all_gather
        text = json.dumps(facts, sort_keys=True).encode()
        longest = int(np.max(gather(np.array([len(text)], np.float32))))
        rows = gather(np.frombuffer(text.ljust(longest), np.uint8).astype(np.float32))
        return [json.loads(bytes(row.astype(np.uint8))) for row in rows]
