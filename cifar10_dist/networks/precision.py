"""``--dtype auto``: bfloat16 where it is faster.

A processor that multiplies bfloat16 (AVX512_BF16 or AMX) does twice as many products a second or
more. But MXNet keeps weights in float32 and casts them in every step, so it pays only if each
weight is used often. ResNet-18 with the ImageNet stem uses a weight 3 times for a 32x32 image and
gains little or nothing (801, 876 and 757 samples/s instead of 808, 807 and 749); cifar_resnet20_v2
uses it 150 times and gains a third (batch 256, two cores with AVX512_BF16). The limit lies between
the two. Other processors only imitate bfloat16: not chosen.
"""

import json
import math
from pathlib import Path

import mxnet as mx
from mxnet.contrib import amp

from networks.by_name import build_network
from process.launched import is_first_worker

PROCESSOR_HAS = {"avx512_bf16", "amx_bf16"}  # one of them
USES_A_STEP = 5000  # of each weight, on average, from which on the casts are repaid


def set_dtype(args, ctx):
    """Have the networks that are created from now on compute in ``--dtype``, and settle ``auto``.

    Parameters
    ----------
    args, ctx
        As of :func:`choose_dtype`; an ``auto`` among the first is replaced, and told by worker 0.
    """
    if args.dtype == "auto":
        args.dtype = choose_dtype(args, ctx)
        if is_first_worker():
            print(f"--dtype auto: {args.dtype}", flush=True)
    if args.dtype != "float32":
        amp.init(target_dtype=args.dtype)


def choose_dtype(args, ctx, cpuinfo="/proc/cpuinfo"):
    """Return what ``--dtype auto`` stands for.

    Parameters
    ----------
    args : argparse.Namespace
    ctx : list of mxnet.Context
        Of this worker; GPUs keep float32, as nobody has measured them here.
    cpuinfo : str
        Linux's file that lists what the processor can do.

    Returns
    -------
    {'float32', 'bfloat16'}
    """
    if ctx[0].device_type == "gpu" or not PROCESSOR_HAS & processor_flags(cpuinfo):
        return "float32"
    net = build_network(args.network, args.num_classes, args.image_shape, args.num_layers)
    uses = uses_of_a_weight(net, args.image_shape) * args.batch_size / len(ctx)
    return "bfloat16" if uses >= USES_A_STEP else "float32"


def processor_flags(cpuinfo="/proc/cpuinfo"):
    """Return what Linux says the processor can do, as a set of words."""
    try:
        lines = Path(cpuinfo).read_text().splitlines()
    except OSError:  # not Linux
        return set()
    return set(next((line.split() for line in lines if line.startswith("flags")), ()))


def uses_of_a_weight(net, image_shape):
    """Return how many products a weight takes part in for one image, on average over all weights.

    Convolutions and linear layers are counted.
    """
    layers = net(mx.sym.var("data")).get_internals()
    _, shapes, _ = layers.infer_shape(data=(1,) + tuple(image_shape))
    # An operator may have several outputs; the first, which counts here, bears its name.
    shape_of = dict(zip(layers.list_outputs(), shapes))
    nodes = json.loads(layers.tojson())["nodes"]
    weights = products = 0
    for node in nodes:
        if node["op"] in ("Convolution", "FullyConnected"):
            size = math.prod(shape_of[nodes[node["inputs"][1][0]]["name"]])
            weights += size
            products += size * math.prod(shape_of[f"{node['name']}_output"][2:])
    return products / weights
