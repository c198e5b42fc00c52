"""Import the GPU build of MXNet without a GPU, and train one step on the CPU with it."""

import gluon_dist  # noqa: F401, I001
import mxnet as mx
from mxnet import autograd, gluon

features = mx.runtime.Features()
for name in ("CUDA", "CUDNN", "NCCL"):
    assert features.is_enabled(name), f"mxnet was built without {name}"
assert mx.context.num_gpus() == 0

net = gluon.nn.Dense(1)
net.initialize()
trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
x, y = mx.nd.array([[1.0], [2.0]]), mx.nd.array([[3.0], [5.0]])  # (2, 1)
losses = []
for _ in range(2):
    with autograd.record():
        loss = gluon.loss.L2Loss()(net(x), y).mean()
    loss.backward()
    trainer.step(1)
    losses.append(loss.asscalar())
assert losses[1] < losses[0], f"a step made the loss worse: {losses}"

print(f"mxnet {mx.__version__} imports with CUDA, CUDNN and NCCL, sees no GPU, trains on the CPU")
