"""``pytorch_side.autocast`` in Gluon: a program, as ``amp.init`` changes all that follows it."""

import json
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2] / "cifar10_dist"))
import mxnet_setup  # noqa: F401  before mxnet: threads, NumPy's old names

import mxnet as mx
import numpy as np
from mxnet import gluon
from mxnet.contrib import amp


def types():
    amp.init(target_dtype="bfloat16")  # before the network, for the whole process
    layer = gluon.nn.Dense(2, in_units=2, use_bias=False)
    layer.initialize()
    scores = layer(mx.nd.ones((1, 2)))
    loss = gluon.loss.SoftmaxCrossEntropyLoss()(scores, mx.nd.zeros(1))
    arrays = {"weight": layer.weight.data(), "scores": scores, "loss": loss}
    return {name: name_of(array.dtype) for name, array in arrays.items()}


def name_of(dtype):
    """NumPy has no bfloat16: MXNet hands it a number of 16 bits that is called so."""
    dtype = np.dtype(dtype)
    return dtype.names[0] if dtype.names else dtype.name


if __name__ == "__main__":
    print(json.dumps(types()))
