"""Like GluonCV's ``train_cifar10.py``: its network, its schedule, a DataLoader, split_and_load."""

import gluoncv
import mxnet as mx
import numpy as np
from mxnet import autograd, gluon

batch_size, ctx = 8, [mx.cpu(1), mx.cpu(2)]
store = mx.kv.create("dist_sync")
net = gluoncv.model_zoo.get_model("cifar_resnet20_v1", classes=10)
net.initialize(mx.init.Xavier(), ctx=ctx)
net.hybridize()
schedule = gluoncv.utils.LRSequential(
    [
        gluoncv.utils.LRScheduler("linear", base_lr=0, target_lr=0.1, niters=2),
        gluoncv.utils.LRScheduler("cosine", base_lr=0.1, target_lr=0, niters=4),
    ]
)
trainer = gluon.Trainer(
    net.collect_params(), "nag", {"lr_scheduler": schedule, "momentum": 0.9}, kvstore=store
)
random = np.random.RandomState(store.rank)
examples = gluon.data.ArrayDataset(
    random.rand(32, 3, 32, 32).astype("float32"), random.randint(10, size=32).astype("float32")
)
loss = gluon.loss.SoftmaxCrossEntropyLoss()
for x, y in gluon.data.DataLoader(examples, batch_size, shuffle=True, num_workers=1):
    xs, ys = (gluon.utils.split_and_load(part, ctx) for part in (x, y))
    with autograd.record():
        losses = [loss(net(x), y) for x, y in zip(xs, ys)]
    autograd.backward(losses)
    trainer.step(batch_size * store.num_workers)
learned = [p for p in net.collect_params().values() if p.grad_req != "null"]
totals = [float(abs(p.data(device)).sum().asscalar()) for p in learned for device in ctx]
print("weights", sum(totals[::2]), sum(totals[1::2]), flush=True)
