"""Raise the stop flag on the last worker in step 5; say in which step each worker sees it."""

import argparse
import itertools
import time

import gluon_dist  # noqa: F401
from gluon_dist.common.failure import exit_with
from gluon_dist.workers.workers import Workers

import mxnet as mx


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--kv-store", default="dist_sync")
    parser.add_argument("--gc-type")
    parser.add_argument("--late", type=float, default=0, help="seconds; of the last worker")
    args = parser.parse_args()
    store = mx.kv.create(args.kv_store)
    if args.gc_type:
        store.set_gradient_compression({"type": args.gc_type, "threshold": 2.0})
    if "async" in args.kv_store:
        store.set_optimizer(mx.optimizer.create("adam", learning_rate=1e-6))
    workers = Workers(store)
    flag = workers.collectives.shared_flag()
    is_last = workers.rank == workers.count - 1
    for step in itertools.count():  # dist_async: the others make any number of steps meanwhile
        if is_last and step == 5:
            time.sleep(args.late)
        if flag.exchange(is_last and step >= 5):
            print(f"seen in step {step}", flush=True)
            break
        if workers.is_async:
            mx.nd.waitall()
    workers.barrier()


exit_with(main, "raise_flag.py")
