"""Go wrong in one of two ways: `raise` (one worker fails), `uneven` (one has more batches)."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2] / "cifar10_dist"))
import mxnet_setup  # noqa: F401  before mxnet: servers and the scheduler never get further

import mxnet as mx

from ground.failure import exit_with


def main(way):
    store = mx.kv.create("dist_sync")
    store.init(0, mx.nd.zeros(1))
    num_batches = 4 if way == "uneven" and store.rank == 0 else 3
    for step in range(num_batches):
        if way == "raise" and store.rank == 1 and step == 2:
            raise ValueError("this image is broken")
        gradient = mx.nd.ones(1)
        store.push(0, gradient)
        store.pull(0, out=gradient)  # the server answers when all workers have pushed
        print(f"step {step}: {gradient.asscalar():.0f} gradients added up", flush=True)
    print("my epoch is done", flush=True)


if __name__ == "__main__":
    exit_with(lambda: main(sys.argv[1]), "end_badly.py")
