"""What the workers of a job tell each other besides gradients: counts, statistics, agreement."""

import json
import time

import numpy as np

from ground.collectives import Collectives, OneWorker
from ground.environment import uses_p3
from ground.failure import UsageError
from networks.statistics import running_statistics

OTHERS_WAIT_S = 5  # before they repeat what worker 0 says; a launcher has stopped them by then


class Workers:
    """The workers of a job, as one of them sees the others. All make the same calls.

    Parameters
    ----------
    store : mxnet.kvstore.KVStore
        Any type; on one that is not distributed there is one worker.
    """

    def __init__(self, store):
        self.rank, self.count = store.rank, store.num_workers
        self.store_type, self.is_async = store.type, "async" in store.type
        self.collectives = Collectives(store) if store.num_workers > 1 else OneWorker()

    def sum(self, values):
        """Add up a vector of numbers over all workers.

        Parameters
        ----------
        values : array_like of float, shape (n,)

        Returns
        -------
        ndarray of float64, shape (n,)
            Added in the order of the ranks: the same on every worker to the last bit, and exact
            for whole numbers up to 2**53.
        """
        return self.gather(values).sum(axis=0)

    def gather(self, values):
        """Give every worker the vectors of all, shape (workers, n), float64."""
        return self.collectives.all_gather(np.asarray(values, np.float64))

    def sum_float32(self, values):
        """Add up a float32 vector over all workers, in float32: less traffic than :meth:`sum`."""
        return self.collectives.all_reduce(np.asarray(values, np.float32))

    def hand_out(self, content):
        """Give every worker the bytes of worker 0; what the others pass is not looked at."""
        if self.count == 1:
            return content
        size = np.array([len(content or b"")], np.int64)
        size = int(self.collectives.broadcast(size.view(np.float32)).view(np.int64)[0])
        padded = np.zeros(-(-size // 4) * 4, np.uint8)
        if self.rank == 0:
            padded[:size] = np.frombuffer(content, np.uint8)
        if not size:
            return b""
        return self.collectives.broadcast(padded.view(np.float32)).tobytes()[:size]

    def gather_texts(self, text):
        """Give every worker the texts of all, in the order of the ranks."""
        content = text.encode()
        longest = int(self.gather([len(content)]).max())
        rows = self.gather(np.frombuffer(content.ljust(longest), np.uint8))
        return [bytes(row.astype(np.uint8)).decode().rstrip(" ") for row in rows]

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


def average_statistics(net, workers):
    """Average BatchNorm's running mean and variance over all devices of all workers.

    Each device keeps its own while training, so that workers with equal weights would otherwise
    report different accuracies.
    """
    params = running_statistics(net)
    if not params:
        return
    num_devices = len(params[0].list_ctx())
    sums = [sum(data.asnumpy() for data in param.list_data()) for param in params]
    total = workers.sum_float32(np.concatenate([*map(np.ravel, sums), [num_devices]]))
    mean = total[:-1] / total[-1]
    ends = np.cumsum([part.size for part in sums])
    for param, values in zip(params, np.split(mean, ends[:-1])):
        for data in param.list_data():  # set_data would reset the store, and dist_async refuses
            data[:] = values.reshape(param.shape)
