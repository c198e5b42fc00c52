"""Rank 1 computes four times as long as rank 0: who waits, and how old are the weights?

Usage: slow_worker.py dist_sync|dist_async FOLDER; each rank writes its times to a file in FOLDER.
"""

import json
import sys
import time
from pathlib import Path

import gluon_dist  # before mxnet, from which no server returns
from gluon_dist.common.failure import exit_with

import mxnet as mx

SLOW_UPDATES, SLOW_COMPUTE_S = 8, 0.4
TIMES_AS_FAST = 4  # rank 0, a whole number


def main():
    kind, folder = sys.argv[1:]
    store = mx.kv.create(kind)
    is_async = "async" in kind
    updates, compute_s = SLOW_UPDATES, SLOW_COMPUTE_S
    if store.rank == 0:
        compute_s /= TIMES_AS_FAST
        updates *= TIMES_AS_FAST if is_async else 1  # dist_sync: as many pushes as the others

    store.init(0, mx.nd.zeros(1))
    store.set_optimizer(mx.optimizer.SGD(learning_rate=1))  # sent to the server
    push_value = -1 if is_async else -1 / store.num_workers
    events = train(store, updates, compute_s, push_value)
    store._barrier()  # everyone's pushes are in

    version = mx.nd.zeros(1)
    store.pull(0, out=version)
    Path(folder, f"{kind}-{store.rank}.json").write_text(json.dumps(events), encoding="utf-8")
    others = " ".join(str(event["others"]) for event in events)
    print(f"rank {store.rank}: {len(events)} updates, the weight ends at {version.asscalar():.0f}")
    print(f"rank {store.rank}: updates by the other rank in each of its own: {others}")
    store._barrier()  # nobody leaves while others still need the servers


def train(store, updates, compute_s, push_value):
    """Return of each update when it began, was pushed and was answered, and what others did.

    Every update of the server adds 1 to the weight: it is its own version number.
    """
    weight = mx.nd.zeros(1)
    store.pull(0, out=weight)
    weight.wait_to_read()
    store._barrier()  # all begin with the same weight
    events = []
    for _ in range(updates):
        began, version = time.monotonic(), weight.asscalar()
        time.sleep(compute_s)  # in place of forward and backward
        pushed = time.monotonic()
        store.push(0, mx.nd.full(1, push_value))
        store.pull(0, out=weight)
        others = int(weight.asscalar() - version) - 1  # asscalar waits; 1 is this worker's own
        times = {"began": began, "pushed": pushed, "answered": time.monotonic()}
        events.append(dict(times, others=others))
    return events


if __name__ == "__main__":
    exit_with(main, "slow_worker.py")
