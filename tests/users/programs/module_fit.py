"""MXNet's older way: a symbol, ``Module.fit`` and ``ImageRecordIter``, on two kinds of pictures."""

import sys

import mxnet as mx
import numpy as np

store = mx.kv.create(sys.argv[2])
prefix = f"{sys.argv[1]}/worker-{store.rank}"
record = mx.recordio.MXIndexedRecordIO(f"{prefix}.idx", f"{prefix}.rec", "w")
for i in range(64):
    picture = np.full((8, 8, 3), 40 + 150 * (i % 2) + i % 16, np.uint8)
    header = mx.recordio.IRHeader(0, i % 2, i, 0)
    record.write_idx(i, mx.recordio.pack_img(header, picture, img_fmt=".png"))
record.close()
part = {"num_parts": store.num_workers, "part_index": store.rank}
settings = {"data_shape": (3, 8, 8), "batch_size": 8, "mean_r": 120, "mean_g": 120, "mean_b": 120}
images = mx.io.ImageRecordIter(
    path_imgrec=f"{prefix}.rec", path_imgidx=f"{prefix}.idx", scale=1 / 80, **settings, **part
)
scores = mx.sym.FullyConnected(mx.sym.Flatten(mx.sym.Variable("data")), num_hidden=2)
module = mx.mod.Module(mx.sym.SoftmaxOutput(scores, name="softmax"))
sgd = {"learning_rate": 0.01, "lr_scheduler": mx.lr_scheduler.FactorScheduler(10, 0.9)}
module.fit(images, kvstore=store, optimizer="sgd", optimizer_params=sgd, num_epoch=3)
images.reset()
accuracy = dict(module.score(images, "acc"))["accuracy"]
weights, _ = module.get_params()
print("weights", *(float(w.sum().asscalar()) for w in weights.values()), accuracy, flush=True)
