#!/usr/bin/env python3
"""One worker of growth.py: it sleeps in the place of computing, and sends for real.

    python tools/launch.py -n 2 -s 2 --launcher local "python benchmarks/growth_worker.py"

Prints, on worker 0, the median seconds of a step and of an exchange of one number.
"""

import argparse
import statistics
import sys
import time
from pathlib import Path

parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
parser.add_argument("--overlap", type=int, choices=(0, 1), default=1, help="send while it computes")
parser.add_argument("--buckets", type=int, default=4)
parser.add_argument("--elements", type=int, default=1_000_000, help="float32 numbers of a bucket")
parser.add_argument("--forward", type=float, default=0.2, help="seconds")
parser.add_argument("--backward", type=float, default=0.4, help="seconds, of all buckets")
parser.add_argument("--steps", type=int, default=8)
parser.add_argument("--small", type=int, default=200, help="exchanges of one number")
args = parser.parse_args()

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "cifar10_dist"))
import mxnet_setup  # noqa: E402, F401

import mxnet as mx  # noqa: E402
from failure import run  # noqa: E402

WARM_UP = 2


def step(store, buckets):
    """Compute and exchange once, in the order of `BucketTrainer`: the last layers first."""
    time.sleep(args.forward)
    end = time.perf_counter()
    for place in reversed(range(len(buckets))):
        end += args.backward / len(buckets)
        time.sleep(max(0, end - time.perf_counter()))
        if args.overlap:
            store.pushpull(place, buckets[place], priority=-place)
    if not args.overlap:
        for place in reversed(range(len(buckets))):
            store.pushpull(place, buckets[place], priority=-place)
    for bucket in buckets:
        bucket.wait_to_read()


def seconds(act, times):
    """Return the median seconds of an act, without the first few."""
    found = []
    for _ in range(WARM_UP + times):
        start = time.perf_counter()
        act()
        found.append(time.perf_counter() - start)
    return statistics.median(found[WARM_UP:])


def main():
    """Measure, and print."""
    store = mx.kv.create("dist")
    number = mx.nd.zeros(1)
    buckets = [mx.nd.ones(args.elements) for _ in range(args.buckets)]
    for key, array in enumerate([*buckets, number]):
        store.init(key, array)

    def exchange_number():
        store.pushpull(args.buckets, number)
        number.wait_to_read()

    store.pushpull(0, buckets[0])
    if (buckets[0] != store.num_workers).sum().asscalar():
        raise RuntimeError("the servers did not add up what the workers sent")
    for bucket in buckets:
        bucket[:] = 0  # sums that stay what they are
    small = seconds(exchange_number, args.small)
    whole = seconds(lambda: step(store, buckets), args.steps)
    if store.rank == 0:
        print(f"Step: {whole:.6f} s, one number: {small:.6f} s", flush=True)
    return 0


if __name__ == "__main__":
    run(main, "growth_worker.py")
