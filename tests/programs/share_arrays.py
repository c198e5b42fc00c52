"""Add arrays up in shared memory, many times; argv: folder for the sums; killed, to end so."""

import os
import signal
import sys
import time

import gluon_dist  # noqa: F401  first
from gluon_dist.common.failure import exit_with
from gluon_dist.exchange.shared_memory import BLOCK, share_memory
from gluon_dist.workers.workers import Workers

import mxnet as mx
import numpy as np


def main():
    workers = Workers(mx.kv.create("dist_sync"))
    memory = share_memory(workers, True, 0)
    if memory is None:
        print("no memory in common", flush=True)
        workers.barrier()
        return
    for size in (1, 7, BLOCK - 1, 5 * BLOCK + 3):
        rows = memory.array(size, "float32")
        assert not rows[workers.rank].any()
        for turn in range(20):
            random = np.random.RandomState([size, turn, workers.rank])
            time.sleep(0.002 * (turn % 3 == workers.rank))  # one or the other is late
            rows[workers.rank] = random.rand(size)
            memory.add_up(rows)
            memory.barrier()
            np.save(f"{sys.argv[1]}/{workers.rank}-{size}-{turn}.npy", rows[workers.rank])
    if "killed" in sys.argv:
        rows = memory.array(50_000_000, "float32")
        rows[workers.rank] = 1
        print(f"of {rows.nbytes // 1_000_000} MB", flush=True)
        memory.barrier()
        if workers.rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        memory.barrier()  # the other waits here for ever
    workers.barrier()


if __name__ == "__main__":
    exit_with(main, "share_arrays.py")
