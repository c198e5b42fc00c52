"""Time stacks of equal layers in one type: layer_speed.py {float32,bfloat16}.

Prints a line of JSON for each stack: its name and the processor time of a step (ms), or what MXNet
says if this processor cannot compute the type.
"""

import json
import sys
import time

import gluon_dist  # before mxnet: it sets the number of threads

import mxnet as mx
from mxnet.contrib import amp
from mxnet.gluon import nn

import lesson
from training import forward_backward

DEPTH = 4  # layers of a stack
ROUNDS, MAX_STEPS, MAX_SECONDS = 3, 20, 0.2  # the fastest round counts
STACKS = {
    "convolution, 8 channels": ((32, 8, 32, 32), lambda: nn.Conv2D(8, 3, padding=1)),
    "convolution, 32 channels": ((32, 32, 16, 16), lambda: nn.Conv2D(32, 3, padding=1)),
    "convolution, 128 channels": ((32, 128, 8, 8), lambda: nn.Conv2D(128, 3, padding=1)),
    "dense layer, 4 examples": ((4, 1024), lambda: nn.Dense(1024)),
    "dense layer, 256 examples": ((256, 1024), lambda: nn.Dense(1024)),
}


def main(dtype):
    if dtype != "float32":
        amp.init(target_dtype=dtype)  # before any network; there is no way back in this process
    for name, (shape, create_layer) in STACKS.items():
        try:
            found = {"ms": time_step(shape, create_layer)}
        except mx.MXNetError as error:
            found = {"error": str(error).strip().splitlines()[-1]}
        print(json.dumps({"stack": name, **found}), flush=True)


def time_step(shape, create_layer):
    """Return the processor time of forward, backward and update (ms)."""
    net = nn.HybridSequential()
    for _ in range(DEPTH):
        net.add(create_layer(), nn.Activation("relu"))
    net.initialize(mx.init.Xavier())
    net.hybridize(static_alloc=True, static_shape=True)
    trainer = mx.gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 1e-6})
    x, loss = mx.nd.random.uniform(shape=shape), lambda output, label: output.astype("float32")
    fastest = float("inf")
    for number in range(1 + ROUNDS):  # the first one warms up
        start, steps = time.process_time(), 0
        while steps < (MAX_STEPS if number else 2) and time.process_time() - start < MAX_SECONDS:
            forward_backward(net, loss, [x], [None], shape[0])
            trainer.step(1)
            mx.nd.waitall()
            steps += 1
        if number:
            fastest = min(fastest, (time.process_time() - start) / steps)
    return 1000 * fastest


if __name__ == "__main__":
    main(sys.argv[1])
