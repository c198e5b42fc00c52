"""A gradient that MXNet's servers refuse: one of them aborts in native code."""

import mxnet as mx

net = mx.gluon.nn.Embedding(50, 8, sparse_grad=True)
net.initialize()
trainer = mx.gluon.Trainer(net.collect_params(), "sgd", kvstore="dist_sync")
for _ in range(3):
    with mx.autograd.record():
        loss = net(mx.nd.array([1, 2, 3])).sum()
    loss.backward()
    trainer.step(1)
mx.nd.waitall()
