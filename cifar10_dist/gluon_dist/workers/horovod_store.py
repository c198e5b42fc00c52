"""A store without servers: Horovod sums by ring all-reduce.

``mx.kv.create("horovod")`` makes the store, as MXNet's own documentation has it, though MXNet 1.9.1
leaves it out. Each gradient goes around once to be added up and once to be handed out (Sergeev and
Del Balso 2018, arXiv 1802.05799), so that with more workers no cable carries more.
"""

import atexit
import os

from gluon_dist.common.errors import UsageError
from gluon_dist.setup.environment import num_ring_workers

import mxnet as mx
import numpy as np


class Horovod(mx.kv.KVStoreBase):
    """A kvstore without servers: pulling a key returns the sum of what the workers pushed.

    All of them make the same calls with the same keys. Arrays are added up on the CPU.

    Raises
    ------
    UsageError
        If ``mpirun`` has started several workers, and Horovod was built without MPI.
    """

    type, rank, num_workers = "horovod", None, None

    def __init__(self):
        # A bucket is one message: sums are repeatable only if Horovod puts no others into it.
        os.environ.setdefault("HOROVOD_FUSION_THRESHOLD", "0")
        import horovod.mxnet as hvd  # not everywhere

        hvd.init()
        self._hvd, self.rank, self.num_workers = hvd, hvd.rank(), hvd.size()
        self._first, self._pushed = {}, {}
        if self.num_workers < num_ring_workers():
            raise UsageError(
                "Horovod was built without MPI, and mpirun's workers do not find each other: "
                "start them with horovodrun, or with tools/launch.py -s 0 --launcher mpi"
            )
        atexit.register(self._barrier)  # before Horovod's own end, which is the end for all workers

    def is_capable(self, capability):
        """Return False: workers update."""
        return False

    def init(self, key, value):
        """Let the next pull of a key return worker 0's value."""
        self._first[key] = value

    def push(self, key, value, priority=0):
        """Let the next pull of a key return the sum of what the workers push."""
        self._pushed[key] = value.copy()

    def pull(self, key, out, priority=0):
        """Write the sum, or worker 0's first value, to an array; without a push zeros are added."""
        if key in self._pushed:
            out[:] = self._pushed.pop(key)
        elif key in self._first:
            self.broadcast(key, self._first.pop(key), out)
            return
        else:
            out[:] = 0
        self._add_up(key, out, priority)

    def pushpull(self, key, value, out=None, priority=0):
        """Sum an array over all workers and, if it is a list, over the devices in it."""
        values, outs = (
            each if isinstance(each, list) else [each] for each in (value, out or value)
        )
        total = outs[0]
        if len(values) > 1 or total.context != mx.cpu():
            total = mx.nd.add_n(*(each.as_in_context(mx.cpu()) for each in values))
        elif total is not values[0]:
            total[:] = values[0]
        self._add_up(key, total, priority)
        _copy(total, outs)

    def broadcast(self, key, value, out, priority=0):
        """Write worker 0's value, bit for bit, to an array or to those of a list; wait for it.

        The workers add up bytes, zeros but for worker 0's. Horovod 0.28.1's own broadcast may read
        a name that is freed by then, and crash (``EnqueueTensorBroadcast`` in operations.cc).
        """
        first = value.asnumpy()
        content = mx.nd.array(first.ravel().view(np.uint8) * (self.rank == 0), dtype="uint8")
        self._add_up(f"first {key}", content, priority)
        first = content.asnumpy().view(first.dtype).reshape(first.shape)
        _copy(mx.nd.array(first, dtype=first.dtype), out if isinstance(out, list) else [out])

    def _add_up(self, key, array, priority):
        self._hvd.allreduce_(array, op=self._hvd.Sum, name=f"sum {key}", priority=priority)

    def _barrier(self):
        mx.nd.waitall()
        self.pushpull("barrier", mx.nd.zeros(1))
        mx.nd.waitall()


def _copy(array, outs):
    for out in outs:
        if out is not array:
            array.copyto(out)


def register_stores():
    """Let ``mx.kv.create("horovod")`` make that store."""
    mx.kv.KVStoreBase.register(Horovod)
