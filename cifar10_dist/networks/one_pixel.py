"""Convolutions whose output is one pixel, computed as products of matrices.

A network for large images, given small ones, has only one pixel left in its last layers. Most of
the kernel then lies on the padding, but oneDNN 2.4, which MXNet uses on processors, multiplies all
of it. Here only the part on the image is multiplied. Parameters and results stay the same.
"""

import contextlib
import functools
import json
from collections import Counter

import mxnet as mx
from mxnet.gluon import nn


def product(block, F, x, weight, bias=None):
    """Return the products of every image with every kernel, shape (n, channels, 1, 1).

    It takes the place of a convolution's ``hybrid_forward``. ``block.seen`` is the part of the
    kernel that lies on the image: (begin, end) of its rows and of its columns. The rest of the
    kernel has a gradient of zero.
    """
    begin, end = zip(*block.seen)
    kernel = F.slice(weight, begin=(None, None, *begin), end=(None, None, *end))
    inputs = (x, kernel.reshape((0, -1)), *(() if bias is None else (bias,)))
    out = F.FullyConnected(*inputs, num_hidden=block._channels, no_bias=bias is None)
    out = out.reshape((0, 0, 1, 1))
    return out if block.act is None else block.act(out)


def use_products(net, image_shape):
    """Let a network compute such convolutions as products; call it before hybridizing.

    Parameters
    ----------
    net : mxnet.gluon.HybridBlock
        Its shapes are known, and it runs on CPUs.
    image_shape : tuple of int
        (channels, height, width) of all images to come.
    """
    sizes = _sizes(net, image_shape)
    for block in _blocks(net):
        if type(block) is nn.Conv2D and f"{block.name}_fwd" in sizes:
            seen = _seen(block._kwargs, *sizes[f"{block.name}_fwd"])
            if seen:
                block.seen = seen
                block.hybrid_forward = functools.partial(product, block)


@contextlib.contextmanager
def as_convolutions(net):
    """Within a with block, use MXNet's own convolutions again."""
    products = [block for block in _blocks(net) if "hybrid_forward" in vars(block)]
    for block in products:
        del block.hybrid_forward
    try:
        yield
    finally:
        for block in products:
            block.hybrid_forward = functools.partial(product, block)


def _blocks(parent):
    for block in parent._children.values():
        yield block
        yield from _blocks(block)


def _sizes(net, image_shape):
    """Return {name of a convolution: (height, width) of its input, and of its output}.

    The name of a layer that is used twice is not unique: convolutions next to it are left out.
    """
    layers = net(mx.sym.var("data")).get_internals()
    _, shapes, _ = layers.infer_shape(data=(1, *image_shape))
    names = layers.list_outputs()
    times = Counter(names)
    size_of = {name: shape[2:] for name, shape in zip(names, shapes) if times[name] == 1}
    found = {}
    nodes = json.loads(layers.tojson())["nodes"]
    for node in nodes:
        if node["op"] == "Convolution":
            name, source = node["name"], nodes[node["inputs"][0][0]]["name"]
            # The input is the output of a layer, or the images, which have a name of their own.
            size_in = size_of.get(f"{source}_output", size_of.get(source))
            size_out = size_of.get(f"{name}_output")
            if size_in and size_out:
                found[name] = size_in, size_out
    return found


def _seen(options, size_in, size_out):
    """Return the part of the kernel that lies on the image; None if the output is larger."""
    if not _is_plain(options) or size_out != (1, 1) or options["kernel"] == (1, 1):
        return None
    seen = [(pad, pad + size) for pad, size in zip(options["pad"], size_in)]
    sees_all = all(end <= size for (_, end), size in zip(seen, options["kernel"]))
    return seen if sees_all else None


def _is_plain(options):
    return options["num_group"] == 1 and options["dilate"] == (1, 1) and options["layout"] == "NCHW"
