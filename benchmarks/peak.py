#!/usr/bin/env python3
"""Measure the peak of the processors, and count the work of our networks for an image.

    python benchmarks/peak.py [--size 4096]

Prints the GFLOP/s of a large product of matrices by oneDNN, as which MXNet computes a dense layer,
and the multiply-adds of each network's convolutions and dense layers for one image, forward.
"""

import argparse
import json
import time

import gluon_dist  # noqa: F401
from gluon_dist.common.processor import processor_flags

import mxnet as mx
import numpy as np
from mxnet.contrib.amp.amp import bfloat16

import lesson  # noqa: F401
from networks.by_name import get_network

IMAGE_SHAPE = (3, 32, 32)
REPEATS = 5


def product_gflops(size, dtype):
    """Return the most GFLOP/s of a few products of square matrices."""
    matrix = mx.nd.random.uniform(-1, 1, (size, size))
    matrix = mx.nd.amp_cast(matrix, dtype=dtype)
    seconds = []
    for _ in range(REPEATS):
        matrix.wait_to_read()
        start = time.perf_counter()
        mx.nd.FullyConnected(matrix, matrix, num_hidden=size, no_bias=True).wait_to_read()
        seconds.append(time.perf_counter() - start)
    return 2 * size**3 / min(seconds) / 1e9


def multiply_adds(network):
    """Return the multiply-adds of a network's convolutions and dense layers for one image."""
    symbol = get_network(network, 10, IMAGE_SHAPE)(mx.sym.var("data"))
    every = symbol.get_internals()
    shapes = dict(zip(every.list_outputs(), every.infer_shape(data=(1, *IMAGE_SHAPE))[1]))
    nodes = json.loads(symbol.tojson())["nodes"]
    total = 0
    for node in nodes:
        if node["op"] in ("Convolution", "FullyConnected"):
            weight = shapes[nodes[node["inputs"][1][0]]["name"]]
            total += np.prod(shapes[node["name"] + "_output"]) * np.prod(weight[1:])
    return int(total)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--size", type=int, default=4096, help="rows and columns of a matrix")
    size = parser.parse_args().size
    for network in ("resnet18_v1", "fast"):
        print(f"Figure multiply_adds_{network}: {multiply_adds(network)}", flush=True)
    dtypes = {"float32": "float32"}
    if "avx512bw" in processor_flags():  # else MXNet refuses it
        dtypes["bfloat16"] = bfloat16
    for name, dtype in dtypes.items():
        print(f"Figure gflops_{name}: {product_gflops(size, dtype):.1f}", flush=True)


if __name__ == "__main__":
    main()
