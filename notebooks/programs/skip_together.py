"""Two workers meet a gradient that overflows in float16, in the second of four steps.

`together`: they look for it in the sum, as the Trainer does; `alone`: each in its own gradient.
Multiplications run in float16 on a CPU too, so this needs no GPU. For two workers.
"""

import json
import sys

import gluon_dist as gd  # before mxnet, from which no server returns
from gluon_dist.common.failure import exit_with

import mxnet as mx
from mxnet.contrib import amp
from mxnet.contrib.amp.loss_scaler import LossScaler

INPUTS = {0: [1, 1, 1, 1], 1: [1, 4, 1, 1]}  # of each rank; 4 is too much for the first scale


def main(way):
    amp.init(target_dtype="float16")
    params = mx.gluon.ParameterDict()
    weight = params.get("weight", shape=(1,), init="ones")
    params.initialize()
    trainer = gd.Trainer(params, "sgd", {"learning_rate": 0.1})
    amp.init_trainer(trainer)
    if way == "alone":
        trainer._amp_loss_scaler = OwnGradients()
    for step, x in enumerate(INPUTS[gd.rank()]):
        facts = {"rank": gd.rank(), "step": step, "scale": trainer.loss_scale}
        with mx.autograd.record():
            product = weight.data().astype("float16") * mx.nd.array([x], dtype="float16")
            mean = product.astype("float32") / 2  # over an example of each worker
            with amp.scale_loss(mean, trainer) as loss:
                loss.backward()
        facts["gradient"] = float(weight.grad().asscalar())
        if way == "alone":
            trainer._amp_loss_scaler.look(weight)
        trainer.step(1)  # the loss is a mean already
        facts["sent as"] = weight.grad().dtype.__name__
        print(json.dumps({**facts, "weight": round(float(weight.data().asscalar()), 4)}))
    gd.store()._barrier()  # nobody leaves while others still need the servers


class OwnGradients(LossScaler):
    """Decides before the gradients are added up: not what the Trainer does."""

    def look(self, weight):
        """Look at this worker's gradient alone; one that overflows is not sent."""
        self.overflows = super().has_overflow([weight])
        if self.overflows:
            weight.grad()[:] = 0

    def has_overflow(self, params):
        return self.overflows


if __name__ == "__main__":
    exit_with(lambda: main(sys.argv[1]), "skip_together.py")
