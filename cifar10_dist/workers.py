"""What the workers of a job tell each other besides gradients: counts, statistics, agreement."""

import json
import time

import mxnet as mx
import numpy as np
from process.failure import UsageError
from process.launched import uses_p3

FIRST_KEY = 100_000  # above the keys of any Trainer, which count from 0
LAST_KEY = 215_327  # ps-lite multiplies keys by 9973 in 32 bits
OTHERS_WAIT_S = 5  # before they repeat what worker 0 says; a launcher has stopped them by then


class Workers:
    """The workers of a job, as one of them sees the others.

    Parameters
    ----------
    store : mxnet.kvstore.KVStore
        Any type; on one that is not distributed there is one worker.
    """

    def __init__(self, store):
        self.rank, self.count = store.rank, store.num_workers
        self.store_type, self.is_async = store.type, "async" in store.type
        self._store = store if "dist" in store.type else None
        self._next_key, self._unit = FIRST_KEY, None
        self._keys = {}  # length -> (key, buffer), dist_sync only

    def compressed(self, threshold):
        """Take note that the store quantises what is pushed to 0 and ±``threshold`` from now on.

        Sums stay exact: what the other methods push is then 0 or ``threshold`` itself, so that
        nothing is rounded and nothing is kept back for a later push.
        """
        self._unit = np.float32(threshold)
        self._keys = {}  # a key keeps the message format of its first use

    def sum(self, values):
        """Add up a vector of numbers over all workers.

        Parameters
        ----------
        values : array_like of float, shape (n,)
            Of the same length on every worker, which all must make the call.

        Returns
        -------
        ndarray of float64, shape (n,)
            Added in the order of the ranks: the same on every worker to the last bit, and exact
            for whole numbers up to 2**53.
        """
        return self.gather(values).sum(axis=0)

    def gather(self, values):
        """Give every worker the vectors of all, shape (workers, n), float64.

        MXNet's servers may keep float64 as float32: the flag that decides it is never set to
        either (``multi_precision_`` in kvstore_dist_server.h). So each number travels as four
        16-bit pieces, which float32 holds exactly, in a slot where all other workers add zero.
        """
        return self._gather(np.asarray(values, np.float64))

    def sum_float32(self, values):
        """Add up a float32 vector over all workers, in float32: less traffic than :meth:`sum`."""
        values = np.asarray(values, np.float32)
        if self._unit is not None:
            return self._gather(values).sum(axis=0)
        return self._add_up(values)

    def hand_out(self, content):
        """Give every worker the bytes of worker 0; what the others pass is not looked at.

        They travel as a key's first value, which the servers neither add up nor quantise.
        """
        if self.count == 1:
            return content
        size = self._first_value(np.array([len(content or b"")], np.int64).view(np.float32))
        size = int(size.view(np.int64)[0])
        padded = np.zeros(-(-size // 4) * 4, np.uint8)
        if self.rank == 0:
            padded[:size] = np.frombuffer(content, np.uint8)
        if not size:
            return b""
        return self._first_value(padded.view(np.float32)).tobytes()[:size]

    def gather_texts(self, text):
        """Give every worker the texts of all, in the order of the ranks."""
        content = text.encode()
        longest = int(self.gather([len(content)]).max())
        rows = self.gather(np.frombuffer(content.ljust(longest), np.uint8))
        return [bytes(row.astype(np.uint8)).decode().rstrip(" ") for row in rows]

    def barrier(self):
        """Wait until all workers have come here and what they pushed is on the servers."""
        mx.nd.waitall()
        if self.count > 1:
            self._store._barrier()

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
        # Workers that differ in their kind of store add up in different ways, or not at all: each
        # pushes to keys of its own here; not with P3, which numbers keys as a worker meets them.
        exchange = self._gather if self._unit is not None or uses_p3() else self._exchange
        text = json.dumps(facts, sort_keys=True).encode()
        longest = int(max(exchange(np.array([len(text)], np.float32)))[0])
        rows = exchange(np.frombuffer(text.ljust(longest), np.uint8).astype(np.float32))
        everyone = [json.loads(bytes(row.astype(np.uint8))) for row in rows]
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

    def _gather(self, values):
        """Give every worker the vectors of all, bit for bit."""
        pieces = np.ascontiguousarray(values).ravel().view(np.uint16)
        slots = np.zeros((self.count, pieces.size), np.uint16)
        slots[self.rank] = pieces
        return self._sum_pieces(slots).view(values.dtype)

    def _sum_pieces(self, pieces):
        """Add up 16-bit whole numbers; no sum may exceed 16 bits."""
        if self._unit is None or self.count == 1:
            return (
                self._add_up(pieces.ravel().astype(np.float32))
                .astype(np.uint16)
                .reshape(pieces.shape)
            )
        bits = np.unpackbits(pieces.view(np.uint8).ravel(), bitorder="little")
        counts = np.rint(self._add_up(bits * self._unit) / self._unit)
        return (counts.reshape(pieces.shape + (16,)) @ 2 ** np.arange(16)).astype(np.uint16)

    def _add_up(self, values):
        """Add up float32 vectors by the way that the store has."""
        if self.count == 1:
            return values
        return np.sum(self._exchange(values), axis=0) if self.is_async else self._sum_sync(values)

    def _sum_sync(self, values):
        """Push and pull one key; on dist_sync the server adds up what the workers push."""
        if len(values) not in self._keys:
            buffer = mx.nd.zeros(len(values))
            self._keys[len(values)] = self._take_keys(1), buffer
            self._store.init(self._keys[len(values)][0], buffer)
        key, buffer = self._keys[len(values)]
        buffer[:] = values
        self._store.push(key, buffer)
        self._store.pull(key, out=buffer)
        return buffer.asnumpy()  # waits: a second push before it would count as another worker's

    def _exchange(self, values):
        """Push to a fresh key of one's own, which a server stores as it is; pull those of all."""
        if self.count == 1:
            return [values]
        first = self._take_keys(self.count)
        self._store.push(first + self.rank, mx.nd.array(values))
        self.barrier()
        rows = [mx.nd.zeros(len(values)) for _ in range(self.count)]
        for rank, row in enumerate(rows):
            self._store.pull(first + rank, out=row)
        return [row.asnumpy() for row in rows]

    def private_key(self):
        """Return the store, None without other workers, and a key that nothing else uses."""
        return (self._store if self.count > 1 else None), self._take_keys(1)

    def _first_value(self, values):
        """Return worker 0's float32 vector, bit for bit."""
        key, buffer = self._take_keys(1), mx.nd.array(values, dtype="float32")
        self._store.init(key, buffer)  # worker 0's counts; the others wait for it
        self._store.pull(key, out=buffer)
        return buffer.asnumpy()

    def _take_keys(self, number):
        first = self._next_key
        self._next_key += number
        if self._next_key > LAST_KEY + 1:
            raise RuntimeError(f"no keys left: ps-lite takes them up to {LAST_KEY}")
        return first


def running_statistics(net):
    """Return the parameters with BatchNorm's running means and variances, sorted, once they rest.

    To MXNet's engine the backward pass of a network that is hybridized with ``static_shape`` only
    reads them: to ask for their values is not to wait for it, and gives those from before the step.
    """
    mx.nd.waitall()
    return [param for name, param in sorted(net.collect_params().items()) if "running_" in name]


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
