"""What a Trainer that updates on the workers does in its first step, with a hundred keys."""

import mxnet as mx

store = mx.kv.create("dist_sync")
weights = [mx.nd.zeros(1000) for _ in range(100)]
for key, weight in enumerate(weights):
    store.broadcast(key, mx.nd.ones(1000), out=weight)
    store.pushpull(key, mx.nd.ones(1000), out=mx.nd.zeros(1000))
mx.nd.waitall()
wrong = sum(bool((weight != 1).sum().asscalar()) for weight in weights)
print(f"{wrong} weights are wrong", flush=True)
