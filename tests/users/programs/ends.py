"""A user's own program that does not end as it should, in the way that its argument names."""

import contextlib
import os
import sys

import mxnet as mx
from mxnet import autograd, gluon

way = sys.argv[1]
store = mx.kv.create("dist_sync")
net = gluon.nn.Sequential()
# The last backward still computes when the program comes to its end.
rows, units = (512, 1024) if way == "last step" else (2, 4)
for _ in range(4):
    net.add(gluon.nn.Dense(units, in_units=units))
if way == "sparse":
    net = gluon.nn.Embedding(50, 4, sparse_grad=True)
net.initialize()
sgd = {"learning_rate": 0.01}
trainer = gluon.Trainer(
    net.collect_params(), "sgd", sgd, store, update_on_kvstore=False if way == "stale" else None
)
x = mx.nd.array([3, 4]) if way == "sparse" else mx.nd.ones((rows, units))
for step in range(5 - (way == "fewer" and store.rank)):
    with autograd.record():
        loss = (net(x) ** 2).mean()
    if not (way == "stale" and step == 2 and store.rank):
        loss.backward()
    trainer.step(16, ignore_stale_grad=True)
    if way == "raise" and store.rank:
        raise ValueError("odd")
    if way in ("3", "no data") and store.rank:
        sys.exit(int(way) if way == "3" else way)
    if way == "caught":
        with contextlib.suppress(SystemExit):
            sys.exit(2)
if way == "callback":
    local = mx.kv.create("local")
    local.init(1, mx.nd.ones(3))
    local._set_updater(lambda *_: 1 / 0)
    local.push(1, mx.nd.ones(3))
if way == "sparse":
    mx.nd.waitall()  # else the program may end before the server does
if way == "last step" and store.rank == 0:
    net.save_parameters(os.devnull)
print("the end", flush=True)
