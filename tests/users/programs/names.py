"""Parameters that are, or are not, the same on both workers."""

import sys

import mxnet as mx
from mxnet import autograd, gluon

way, store = sys.argv[1], mx.kv.create("dist_sync")
is_other, units, prefixes = store.rank == 1, 3, [None, None]
if is_other and way == "shapes":
    units = 4
if way == "chance":
    prefixes = ["f3", "0b"] if is_other else ["7c", "d2"]
for _ in range({"counts": 1, "order": 9}.get(way, 0) * is_other):
    gluon.nn.Dense(1)  # the next ones count on; by name, dense10 comes before dense9
first = gluon.nn.Dense(3, in_units=3, prefix=prefixes[0])
second = gluon.nn.Dense(units, in_units=3, prefix=prefixes[1])
params = {**first.collect_params(), **second.collect_params()}
for param in params.values():
    param.initialize(mx.init.One())
trainer = gluon.Trainer(params, "sgd", {"learning_rate": 0.5}, store)
with autograd.record():
    loss = second(first(mx.nd.ones((1, 3)))).sum()
loss.backward()
trainer.step(2)
print("weights", *first.weight.data().asnumpy()[0], *second.bias.data().asnumpy(), flush=True)
