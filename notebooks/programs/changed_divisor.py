"""What MXNet's Trainer does on a dist store when its learning rate or its divisor changes.

The word behind says who updates: ``servers`` (MXNet's default) or ``workers``.
"""

import json
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2] / "cifar10_dist"))
import mxnet_setup  # noqa: F401  before mxnet: servers and the scheduler never get further

import mxnet as mx

from ground.failure import exit_with
from trainers.create import share_weights


def main():
    store = mx.kv.create("dist_sync")
    w = mx.gluon.Parameter("w", shape=(1,))
    w.initialize(mx.init.Zero())
    on_servers = sys.argv[1] == "servers"
    options = {"kvstore": store, "update_on_kvstore": on_servers}
    trainer = mx.gluon.Trainer([w], "sgd", {"learning_rate": 1.0}, **options)
    if not on_servers:
        share_weights(trainer)  # before the first step, whose gradient could overtake them

    report("lr 1, step(4)", w, trainer, 4)
    trainer.set_learning_rate(0.1)
    report("lr 0.1, step(4)", w, trainer, 4)
    report("lr 0.1, step(2)", w, trainer, 2)


def report(name, w, trainer, divisor):
    """Take a step with a gradient of -4, and print how far the weight moves or what is raised."""
    before = w.data().asscalar()
    with mx.autograd.record():
        loss = -4 * w.data()
    loss.backward()
    try:
        trainer.step(divisor)
        what = {"moved": round(float(w.data().asscalar() - before), 6)}
    except UserWarning as error:
        what = {"raised": str(error)}
    print(json.dumps({"step": name, **what}))


if __name__ == "__main__":
    exit_with(main, "changed_divisor.py")
