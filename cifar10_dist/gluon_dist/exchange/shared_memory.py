"""Gradients added up in memory that the workers of one host share.

A gradient that goes through the servers is copied several times, by the kernel and by MXNet.
Workers that share memory read it where it is. NCCL and MPI do the same on one host. This way is for
one host and CPUs only; in all other cases the gradients go through the servers.
"""

import ctypes
import mmap
import os
import weakref

from gluon_dist.common.split import split_range
from gluon_dist.exchange.buckets import BUCKET_BYTES, Buckets

import mxnet as mx
import numpy as np
from mxnet.base import _LIB, check_call

PTHREAD_PROCESS_SHARED = 1  # pthread.h
BLOCK = 16384  # elements that are added at a time: they stay in a core's own cache


class SharedMemory:
    """Arrays that the workers have in common, and a barrier.

    The memory is a file without a name: the system removes it when the last process that has it
    open ends, even if it is killed. The barrier is the C library's: a worker that waits there uses
    no processor time.

    Parameters
    ----------
    file : int
        Descriptor of the file, open in every worker; closed with this object.
    rank, count : int
        This worker's rank, and the number of workers.
    """

    def __init__(self, file, rank, count):
        self.rank, self.count = rank, count
        self._file, self._size = file, 0
        weakref.finalize(self, os.close, file)
        self._libc = ctypes.CDLL(None)
        self._barrier = ctypes.byref(ctypes.c_char.from_buffer(self._map(mmap.PAGESIZE)))

    def create_barrier(self):
        """Make the barrier; one worker calls this, before any worker uses it."""
        kind = ctypes.byref(ctypes.create_string_buffer(64))
        self._libc.pthread_barrierattr_init(kind)
        self._libc.pthread_barrierattr_setpshared(kind, PTHREAD_PROCESS_SHARED)
        if self._libc.pthread_barrier_init(self._barrier, kind, self.count):
            raise OSError("pthread_barrier_init failed")

    def barrier(self):
        """Wait until all workers have come here."""
        self._libc.pthread_barrier_wait(self._barrier)

    def array(self, size, dtype):
        """Return a new array of zeros, shape (workers, size); all workers ask in the same order."""
        dtype = np.dtype(dtype)
        memory = self._map(self.count * size * dtype.itemsize)
        return np.frombuffer(memory, dtype, self.count * size).reshape(self.count, size)

    def add_up(self, array):
        """Replace each row by the sum of all rows, added in the order of the ranks.

        Every worker fills its own row, then makes this call, which adds up a part of the columns.
        All sums are complete after the next :meth:`barrier`.
        """
        self.barrier()
        start, stop = split_range(array.shape[1], self.count, self.rank)
        for begin in range(start, stop, BLOCK):
            first, *others = array[:, begin : min(begin + BLOCK, stop)]
            for other in others:
                first += other
            for other in others:
                other[:] = first

    def _map(self, size):
        """Make the file longer by ``size`` bytes, and map them."""
        size = -(-size // mmap.PAGESIZE) * mmap.PAGESIZE
        os.posix_fallocate(self._file, self._size, size)  # ftruncate could make it shorter
        part = mmap.mmap(self._file, size, offset=self._size)
        self._size += size
        return part


def share_memory(workers, is_wanted, size):
    """Return a :class:`SharedMemory` of all workers; None unless all of them want and can use it.

    Worker 0 hands out the name of its open file in ``/proc``. Other workers can open it if they see
    the same process numbers: on the same host, in the same container.

    Parameters
    ----------
    workers : Workers
        All of them must make the call.
    is_wanted : bool
        Whether this worker wants it.
    size : int
        Largest number of bytes that will be used. A limit on file sizes may forbid it; then
        nothing is shared.
    """
    table, file, offer = _process_table() if is_wanted else None, None, ""
    if table and workers.rank == 0:
        file = _create_file(workers.count, size)
        if file is not None:
            offer = f"{table} {_identity(file)} /proc/{os.readlink('/proc/self')}/fd/{file}"
    their_table, identity, path = (workers.broadcast(offer.encode()).decode() or "  ").split(" ")
    if workers.rank and path and their_table == table:
        file = _open_file(path, identity)
    if workers.all_reduce([file is not None])[0] == workers.count:
        return SharedMemory(file, workers.rank, workers.count)
    if file is not None:
        os.close(file)
    return None


def _create_file(count, size):
    """Return a file with a barrier for ``count`` workers, or None if the system refuses."""
    try:
        file = os.memfd_create("gradients")
    except OSError:
        return None
    try:
        os.ftruncate(file, size)  # tries the limit; takes no memory yet
        os.ftruncate(file, 0)
        SharedMemory(os.dup(file), 0, count).create_barrier()
    except OSError:
        os.close(file)
        return None
    return file


def _open_file(path, identity):
    """Open worker 0's file; None if it cannot be opened or is another file."""
    try:
        file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError:  # it belongs to another user
        return None
    if _identity(file) == identity:
        return file
    os.close(file)
    return None


def _identity(file):
    found = os.fstat(file)
    return f"{found.st_dev}:{found.st_ino}"


def _process_table():
    """Return an id of the running system and its process numbers; None if there is none."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="utf-8") as boot_id:
            table = boot_id.read().strip() + os.readlink("/proc/self/ns/pid")
    except OSError:
        return None
    return table if hasattr(os, "memfd_create") else None


class SharedBuckets(Buckets):
    """Buckets that lie in shared memory and are not sent.

    Parameters
    ----------
    memory : SharedMemory
        Parameters must be on the CPU, on one device.
    """

    def __init__(self, memory):
        super().__init__(BUCKET_BYTES)
        self._memory, self._rows = memory, []

    def connect(self, workers):
        """Do nothing: what is not sent needs no keys."""

    def add_up(self):
        """Add up each bucket as soon as backward has filled it; the last layers come first."""
        for (bucket,), rows in zip(reversed(self.buckets), reversed(self._rows)):
            # Also for what still reads it: MXNet does not know that the memory changes.
            check_call(_LIB.MXNDArrayWaitToWrite(bucket.handle))
            self._memory.add_up(rows)
        self._memory.barrier()

    def explain(self):
        """Say where gradients are added up."""
        return ["all workers are on one host: gradients are added up in shared memory"]

    def _new_bucket(self, size, like):
        rows = self._memory.array(size, like[0].dtype)
        self._rows.append(rows)
        return [mx.nd.from_numpy(rows[self._memory.rank], zero_copy=True)]
