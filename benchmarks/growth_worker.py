#!/usr/bin/env python3
"""One worker of growth.py: it sleeps instead of computing, and exchanges real arrays.

    python tools/launch.py -n 2 -s 2 --launcher local "python benchmarks/growth_worker.py"

Worker 0 prints the median seconds of a step, of an exchange of one number, and of one of many
numbers that are exchanged at once and all lie on one server.
"""

import argparse
import statistics
import time

parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
parser.add_argument("--overlap", type=int, choices=(0, 1), default=1, help="send while it computes")
parser.add_argument("--buckets", type=int, default=4)
parser.add_argument("--elements", type=int, default=1_000_000, help="float32 numbers of a bucket")
parser.add_argument("--forward", type=float, default=0.2, help="seconds")
parser.add_argument("--backward", type=float, default=0.4, help="seconds, of all buckets")
parser.add_argument("--steps", type=int, default=8)
parser.add_argument("--slow", type=float, default=1.0, help="times as long: the last worker")
parser.add_argument("--two-bits", type=int, choices=(0, 1), default=0, help="in each push")
parser.add_argument("--numbers", type=int, default=40, help="that are exchanged at once")
args = parser.parse_args()

from gluon_dist.common.failure import exit_with

import mxnet as mx

WARM_UP = 2
SERVER_0 = 840  # ps-lite puts key k on server 9973 k % servers; a multiple of 1 to 8


def exchange(store, key, array, priority=0):
    """Replace an array by its sum over the workers."""
    if args.two_bits:  # which pushpull refuses
        store.push(key, array, priority=priority)
        store.pull(key, out=array, priority=priority)
    else:
        store.pushpull(key, array, priority=priority)


def step(store, buckets):
    """Compute and exchange once, the last layers first."""
    order = list(reversed(range(len(buckets))))
    times = args.slow if store.rank == store.num_workers - 1 else 1.0
    time.sleep(times * args.forward)
    end = time.perf_counter()
    for place in order:
        end += times * args.backward / len(buckets)
        time.sleep(max(0, end - time.perf_counter()))
        if args.overlap:
            exchange(store, place, buckets[place], -place)
    if not args.overlap:
        for place in order:
            exchange(store, place, buckets[place], -place)
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
    if args.two_bits:  # a threshold of 1: ones arrive as ones
        store.set_gradient_compression({"type": "2bit", "threshold": 1.0})
    buckets = [mx.nd.ones(args.elements) for _ in range(args.buckets)]
    numbers = {SERVER_0 * (i + 1): mx.nd.zeros(1) for i in range(args.numbers)}
    for key, array in [*enumerate(buckets), *numbers.items()]:
        store.init(key, array)

    def exchange_numbers(keys):
        for key in keys:
            exchange(store, key, numbers[key])
        for key in keys:
            numbers[key].wait_to_read()

    exchange(store, 0, buckets[0])
    if (buckets[0] != store.num_workers).sum().asscalar():
        raise RuntimeError("the servers did not add up what the workers sent")
    for bucket in buckets:
        bucket[:] = 0  # which every sum of them is, too
    one = seconds(lambda: exchange_numbers([SERVER_0]), 100)
    many = seconds(lambda: exchange_numbers(list(numbers)), 10) / args.numbers
    whole = seconds(lambda: step(store, buckets), args.steps)
    if store.rank == 0:
        print(f"Step: {whole:.6f} s, one number: {one:.6f} s", flush=True)
        for name, value in (("step_s", whole), ("number_s", one), ("of_many_s", many)):
            print(f"Figure {name}: {value:.7f}", flush=True)
    return 0


if __name__ == "__main__":
    exit_with(main, "growth_worker.py")
