"""Two ways to get lost in dist_sync: a push too many, and a push too few. For two workers."""

import json
import sys
import time
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2] / "cifar10_dist"))
import mxnet_setup  # noqa: F401  before mxnet: servers and the scheduler never get further

import mxnet as mx

from ground.failure import exit_with


def main():
    store = mx.kv.create("dist_sync")
    for key in range(2):
        store.init(key, mx.nd.zeros(1))
    push_twice(store)
    push_once_less(store)
    store._barrier()  # nobody leaves while others still need the servers


def push_twice(store):
    """Push two arrays to one key and only then pull; rank 1 is quicker than rank 0."""
    if store.rank == 0:
        store._barrier()  # let rank 1 go first
    first, second = (mx.nd.full(1, store.rank + 1) for _ in range(2))
    store.push(0, first)
    store.push(0, second)
    total = mx.nd.zeros(1)
    store.pull(0, out=total)
    say(rank=store.rank, twice=int(total.asscalar()))
    if store.rank == 1:
        store._barrier()


def push_once_less(store):
    """Rank 0 has three batches, rank 1 only two: it hesitates, then pushes zeros."""
    for step in range(3):
        has_batch = step < 3 - store.rank
        if not has_batch:
            time.sleep(2)
        value = mx.nd.full(1, int(has_batch))
        pushed = time.monotonic()  # seconds, by a clock that all processes of a machine share
        store.push(1, value)
        store.pull(1, out=value)
        total = int(value.asscalar())
        say(rank=store.rank, step=step, sum=total, pushed=pushed, answered=time.monotonic())


def say(**facts):
    """Print a line of JSON, times to the hundredth of a second."""
    print(json.dumps({k: round(v, 2) for k, v in facts.items()}))


if __name__ == "__main__":
    exit_with(main, "two_traps.py")
