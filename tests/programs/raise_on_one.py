"""Worker 1 raises while worker 0 waits for it."""

import mxnet_setup  # noqa: F401  first

import mxnet as mx

from ground.failure import exit_with
from workers import Workers


def main():
    store = mx.kv.create("dist_sync")
    if store.rank == 1:
        raise ValueError("on purpose")
    Workers(store).barrier()


exit_with(main, "raise_on_one.py")
