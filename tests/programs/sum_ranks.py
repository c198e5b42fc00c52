"""Add up rank + 1 of all workers over a dist kvstore, then end as the arguments say.

sum_ranks.py [--status N] [--raise] [--sleep S] [--only RANK]
"""

import argparse
import os
import time

import numpy

for name in ("bool", "int", "float", "object", "str"):  # gone from numpy, used by MXNet 1.9.1
    if name not in numpy.__dict__:
        setattr(numpy, name, __builtins__.__dict__[name])
import mxnet as mx  # noqa: E402

parser = argparse.ArgumentParser()
parser.add_argument("--status", type=int, default=0)
parser.add_argument("--raise", action="store_true", dest="raises")
parser.add_argument("--sleep", type=float, default=0)
parser.add_argument("--others", type=float, default=0, help="seconds the others sleep")
parser.add_argument("--only", type=int, help="the worker the other arguments are for")
args = parser.parse_args()

store = mx.kv.create("dist_sync")
total = mx.nd.zeros((1,))
store.init(0, total)
store.push(0, mx.nd.array([store.rank + 1]))
store.pull(0, out=total)
print(
    f"worker {os.environ.get('LAUNCH_WORKER_ID')} is rank {store.rank} of {store.num_workers},"
    f" sum {total.asscalar():.0f}",
    flush=True,
)
if args.only in (None, store.rank):
    time.sleep(args.sleep)
    if args.raises:
        raise ValueError("a plain error")
    if args.status:
        os._exit(args.status)
else:
    time.sleep(args.others)
