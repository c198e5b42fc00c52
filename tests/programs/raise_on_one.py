"""Worker 1 raises while worker 0 waits for it."""

import gluon_dist  # noqa: F401  first
from gluon_dist.common.failure import exit_with
from gluon_dist.workers.workers import Workers

import mxnet as mx


def main():
    store = mx.kv.create("dist_sync")
    if store.rank == 1:
        raise ValueError("on purpose")
    Workers(store).barrier()


exit_with(main, "raise_on_one.py")
