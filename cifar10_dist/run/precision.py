"""``--dtype``: the type a network computes in.

A processor with AVX512_BF16 or AMX multiplies bfloat16 faster than float32. But MXNet keeps weights
in float32 and casts them in every step, and oneDNN has fewer kernels for bfloat16. Which type wins
depends on the network, the batch and the processor: the same network gained 60 % on one processor
with AVX512_BF16, and lost 37 % on another. Processors with only AVX-512 emulate bfloat16;
without AVX-512 MXNet refuses it.
"""

from gluon_dist.setup.patches import keep_first_convolution

import mxnet as mx
from mxnet.contrib import amp


def use_mixed_precision(dtype):
    """Let MXNet cast to a type in every network of this process that it compiles from now on.

    It compiles a network at its first step, and puts casts around convolutions and products.
    Weights stay float32. With float32 there is nothing to do.
    """
    if dtype != "float32":
        plain = mx.sym.Convolution
        amp.init(target_dtype=dtype)
        if dtype == "bfloat16":
            keep_first_convolution(mx, plain)
