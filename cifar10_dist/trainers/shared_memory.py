"""Gradients added up in memory that all workers share, where they are on one host.

On its way through the servers a gradient is copied several times, by the kernel and by MXNet,
before its sum is back; workers that share memory read it where it is. NCCL and MPI do the same for
the processes of a host. It is for one host and its CPU only: everything else goes to the servers.
"""

import ctypes
import mmap
import os
import weakref

import mxnet as mx
import numpy as np

from ground.split import split_range
from trainers.buckets import Buckets

PTHREAD_PROCESS_SHARED = 1  # pthread.h
BLOCK = 16384  # elements that are added at a time: they stay in a core's own cache


class SharedMemory:
    """Arrays that the workers have in common, and a barrier.

    It is a file without a name, which goes with the last process that has it open, however that
    ends. The barrier is the C library's, which waits in the kernel and leaves the processor to
    others.

    Parameters
    ----------
    file : int
        Descriptor of the file, open in every worker; closed with this object.
    rank, count : int
        This worker's, and of all.
    """

    def __init__(self, file, rank, count):
        self.rank, self.count = rank, count
        self._file, self._size = file, 0
        weakref.finalize(self, os.close, file)
        self._libc = ctypes.CDLL(None)
        self._barrier = ctypes.byref(ctypes.c_char.from_buffer(self._map(mmap.PAGESIZE)))

    def create_barrier(self):
        """Make the barrier, which one worker does before another uses it."""
        kind = ctypes.byref(ctypes.create_string_buffer(64))
        self._libc.pthread_barrierattr_init(kind)
        self._libc.pthread_barrierattr_setpshared(kind, PTHREAD_PROCESS_SHARED)
        if self._libc.pthread_barrier_init(self._barrier, kind, self.count):
            raise OSError("pthread_barrier_init failed")

    def barrier(self):
        """Wait until all workers have come here."""
        self._libc.pthread_barrier_wait(self._barrier)

    def array(self, size, dtype):
        """Return one more array of zeros, of shape (workers, size); all ask in the same order."""
        dtype = np.dtype(dtype)
        memory = self._map(self.count * size * dtype.itemsize)
        return np.frombuffer(memory, dtype, self.count * size).reshape(self.count, size)

    def add_up(self, array):
        """Replace each row by the sum of all, in the order of the ranks.

        Every worker fills its own row, makes this call, and adds up a part of the columns. The sums
        are complete after the next :meth:`barrier`.
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
        """Map the next part of the file, which grows by it."""
        size = -(-size // mmap.PAGESIZE) * mmap.PAGESIZE
        os.posix_fallocate(self._file, self._size, size)  # never shrinks what another has grown
        part = mmap.mmap(self._file, size, offset=self._size)
        self._size += size
        return part


def share_memory(workers, is_wanted, size):
    """Return a :class:`SharedMemory` of all workers, None if not all can see it and want it.

    Worker 0 tells which of its open files it is, by a name that holds wherever the processes have
    the same numbers: on one host, in one container.

    Parameters
    ----------
    workers : workers.Workers
        All of them must make the call.
    is_wanted : bool
        By this worker.
    size : int
        Bytes that will be asked for at most: a limit on files or memory may not allow them.
    """
    table, file, offer = _process_table() if is_wanted else None, None, ""
    if table and workers.rank == 0:
        file = _create_file(workers.count, size)
        if file is not None:
            offer = f"{table} {_identity(file)} /proc/{os.readlink('/proc/self')}/fd/{file}"
    their_table, identity, path = (workers.hand_out(offer.encode()).decode() or "  ").split(" ")
    if workers.rank and path and their_table == table:
        file = _open_file(path, identity)
    if workers.sum([file is not None])[0] == workers.count:
        return SharedMemory(file, workers.rank, workers.count)
    if file is not None:
        os.close(file)
    return None


def _create_file(count, size):
    """Return a file with a barrier for ``count`` workers, None if the system gives none."""
    try:
        file = os.memfd_create("gradients")
    except OSError:
        return None
    try:
        os.ftruncate(file, size)  # no memory is taken yet
        os.ftruncate(file, 0)
        SharedMemory(os.dup(file), 0, count).create_barrier()
    except OSError:
        os.close(file)
        return None
    return file


def _open_file(path, identity):
    """Open what should be worker 0's file, None if that cannot be or if it is another."""
    try:
        file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError:  # of another user
        return None
    if _identity(file) == identity:
        return file
    os.close(file)
    return None


def _identity(file):
    found = os.fstat(file)
    return f"{found.st_dev}:{found.st_ino}"


def _process_table():
    """Tell which running system and which table of its processes this is; None if it cannot."""
    try:
        with open("/proc/sys/kernel/random/boot_id") as boot_id:
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
        super().__init__()
        self._memory, self._rows = memory, []

    def connect(self, store, first_key):
        """Do nothing: what is not sent needs no keys."""

    def add_up(self):
        """Add up each bucket when backward has filled it, the last layers' first."""
        for (bucket,), rows in zip(reversed(self.buckets), reversed(self._rows)):
            bucket.wait_to_read()
            self._memory.add_up(rows)
        self._memory.barrier()

    def explain(self):
        """Say where gradients are added up."""
        return [
            "all workers are on one host: gradients are added up in shared memory; "
            "--allreduce servers sends them, as between hosts"
        ]

    def _new_bucket(self, size, like):
        rows = self._memory.array(size, like[0].dtype)
        self._rows.append(rows)
        return [mx.nd.from_numpy(rows[self._memory.rank], zero_copy=True)]
