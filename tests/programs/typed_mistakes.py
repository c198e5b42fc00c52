"""Wrong calls of the door, for a type checker: it refuses each line that says so, and no other."""

from typing import List

import gluon_dist as gd

import mxnet as mx
import numpy as np

net, data = mx.gluon.nn.Dense(1), [1.0, 2.0]
trainer = gd.Trainer(net.collect_params(), "sgd")
gd.all_reduce("x")  # refused
gd.all_reduce(1.0, "median")  # refused
gd.all_gather([1, 2])  # refused
gd.broadcast(None)  # refused
number: int = gd.all_reduce(np.zeros(3))  # refused
names: List[str] = gd.devices(["gpu"])  # refused
rank: str = gd.rank()  # refused
gd.size(2)  # refused
gd.store(3)  # refused
gd.broadcast_parameters(["weight"])  # refused
gd.average_statistics("net")  # refused
gd.sync_metric("acc")  # refused
gd.backward(3.0)  # refused
gd.Trainer(net.collect_params(), 3)  # refused
gd.Trainer("weights", "sgd")  # refused
gd.Trainer(net.collect_params(), "sgd", kvstore=1)  # refused
trainer.step("60")  # refused
gd.DataLoader(data, "60")  # refused
gd.DataLoader(3, 60)  # refused
gd.DataLoader(data, 60, last_batch="keep")  # refused
gd.Checkpoint("out/net", net, "trainer")  # refused
gd.Checkpoint("out/net", "net", trainer)  # refused
for batch in gd.Checkpoint("out/net", net, trainer).steps([data]):  # refused
    batch.split("cpu")  # refused
