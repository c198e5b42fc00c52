"""What the workers of a job tell each other besides gradients: counts, statistics, agreement."""

import json
import time

from gluon_dist.common.errors import UsageError
from gluon_dist.setup.environment import uses_p3
from gluon_dist.workers.collectives import Collectives, OneWorker

import numpy as np

OTHERS_WAIT_S = 5  # before they repeat what worker 0 says; a launcher has stopped them by then


class Workers:
    """The workers of a job, as one of them sees the others. All make the same calls.

    Parameters
    ----------
    store : mxnet.kvstore.KVStore
        Any type; on one that is not distributed there is one worker.
    """

    def __init__(self, store):
        self.store = store
        self.rank, self.count = store.rank, store.num_workers
        self.store_type, self.is_async = store.type, "async" in store.type
        if not hasattr(store, "gluon_dist"):  # two of them would take the same keys
            store.gluon_dist = Collectives(store) if store.num_workers > 1 else OneWorker()
        self.collectives = store.gluon_dist
        self.take_keys = self.collectives.take_trainer_keys

    def all_reduce(self, values):
        """Add up a vector of numbers over all workers.

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
        """Give every worker the vectors of all, shape (workers, n), float64."""
        return self.collectives.all_gather(np.asarray(values, np.float64))

    def all_gather_int(self, number):
        """Give every worker the whole numbers of all, a list in the order of the ranks."""
        return self.all_gather([number]).ravel().astype(int).tolist()

    def broadcast(self, content):
        """Give every worker the bytes of worker 0; what the others pass is not looked at."""
        if self.count == 1:
            return content
        size = int(self.collectives.broadcast(np.array([len(content or b"")]))[0])
        own = content if self.rank == 0 else bytes(size)
        return self.collectives.broadcast(np.frombuffer(own, np.uint8)).tobytes()

    def all_gather_texts(self, text):
        """Give every worker the texts of all, in the order of the ranks."""
        content = text.encode()
        longest = int(self.all_gather([len(content)]).max())
        rows = self.collectives.all_gather(np.frombuffer(content.ljust(longest), np.uint8))
        return [row.tobytes().decode().rstrip(" ") for row in rows]

    def barrier(self):
        """Wait until all workers have come here and what they pushed is on the servers."""
        self.collectives.barrier()

    def agree(self, facts):
        """Stop if the workers were not started with the same facts.

        Parameters
        ----------
        facts : dict of str to str
            What must be equal, with its name: options, data, versions.

        Raises
        ------
        UsageError
            Naming the first fact that differs, its values and the workers that have them. Worker 0
            raises at once; the others give it the time to end the job with this one message.
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
        """Give every worker the facts of all, also if their kinds of store differ."""
        gather = self.collectives.all_gather_alone
        if self.collectives.threshold is not None or uses_p3():  # P3 numbers keys as they come
            gather = self.collectives.all_gather
        text = json.dumps(facts, sort_keys=True).encode()
        longest = int(np.max(gather(np.array([len(text)], np.float32))))
        rows = gather(np.frombuffer(text.ljust(longest), np.uint8).astype(np.float32))
        return [json.loads(bytes(row.astype(np.uint8))) for row in rows]
