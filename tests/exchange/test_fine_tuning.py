"""The manual's way to fine-tune: frozen layers stay as they are, BatchNorm's averages too."""

import textwrap

import gluon_dist

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon
from mxnet.gluon.model_zoo import vision

from launching import ROOT

TIME_BUDGET_S = 10


def test_only_the_new_layer_learns_as_the_manual_freezes_the_rest(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    saved = vision.resnet18_v1()
    saved.initialize()
    saved(mx.nd.zeros((1, 3, 32, 32)))
    saved.save_parameters("resnet18_v1.params")
    text = (ROOT / "docs" / "training.md").read_text().split("## Fine-tune")[1]
    code = textwrap.dedent("\n".join(ln for ln in text.splitlines() if ln.startswith("    ")))
    before, step = code.split("features = net.features(data)")
    names = {
        "vision": vision,
        "mx": mx,
        "gluon_dist": gluon_dist,
        "autograd": autograd,
        "ctx": [mx.cpu()],
        "optimizer": mx.optimizer.create("sgd", learning_rate=0.1),
        "data": mx.nd.random.uniform(shape=(4, 3, 32, 32)),
        "label": mx.nd.zeros(4),
        "loss": gluon.loss.SoftmaxCrossEntropyLoss(),
    }
    exec(before, names)
    net = names["net"]
    net.infer_shape(names["data"])

    def values():
        return {k: p.data().asnumpy() for k, p in net._collect_params_with_prefix().items()}

    first = values()
    exec("features = net.features(data)" + step, names)
    names["error"].backward()
    names["trainer"].step(4)
    changed = {name for name, value in values().items() if not np.array_equal(value, first[name])}
    assert changed == {"output.weight", "output.bias"} and any("running" in n for n in first)
