"""Worker 1 raises while worker 0 waits for it."""

import mxnet_setup  # noqa: F401  first

import mxnet as mx

from ground.failure import run


def main():
    store = mx.kv.create("dist_sync")
    if store.rank == 1:
        raise ValueError("on purpose")
    store._barrier()


run(main, "raise_on_one.py")
