"""Two ways to get lost in plain MXNet's dist_sync: two pushes at once, and one too many."""

import time

import numpy as np

np.bool = bool  # plain MXNet, with any NumPy

import mxnet as mx  # noqa: E402


def main():
    store = mx.kv.create("dist_sync")
    for key in range(2):
        store.init(key, mx.nd.zeros(1))
    push_twice(store)
    push_once_more(store)
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
    print(f"rank {store.rank} pushed twice, and pulls {total.asscalar():.0f}")
    if store.rank == 1:
        store._barrier()


def push_once_more(store):
    """Rank 0 pushes four times, its second value by mistake; rank 1 three times, then a zero."""
    values = (1, 100, 1, 1) if store.rank == 0 else (2, 2, 2, 0)
    sums, seconds = [], []
    for value in values:
        if value == 0:
            time.sleep(2)  # without this last push, rank 0 would wait for ever
        pushed, total = time.monotonic(), mx.nd.full(1, value)
        store.push(1, total)
        store.pull(1, out=total)
        sums.append(int(total.asscalar()))
        seconds.append(round(time.monotonic() - pushed, 1))
    print(f"rank {store.rank} pulls {sums} after {seconds} seconds")


if __name__ == "__main__":
    main()
