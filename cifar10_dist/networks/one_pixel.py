"""Convolutions whose output is one pixel, as the product of matrices that they are.

The last layers of a network for large images make one pixel of a small one. oneDNN 2.4, which MXNet
uses on processors, goes through their whole kernels all the same, most of which lies on the
padding. The parameters and what is computed stay the same.
"""

import contextlib
import json
from collections import Counter

import mxnet as mx
from mxnet.gluon import nn


class OnePixelConv2D(nn.Conv2D):
    """A convolution of n images (n, C, H, W) to (n, channels, 1, 1).

    ``seen`` is the part of the kernel that lies on the image, (begin, end) of rows and of columns;
    the gradient of the rest is zero.
    """

    def hybrid_forward(self, F, x, weight, bias=None):
        """Multiply every image with every kernel."""
        begin, end = zip(*self.seen)
        kernel = F.slice(weight, begin=(None, None, *begin), end=(None, None, *end))
        inputs = (x, kernel.reshape((0, -1)), *(() if bias is None else (bias,)))
        out = F.FullyConnected(*inputs, num_hidden=self._channels, no_bias=bias is None)
        out = out.reshape((0, 0, 1, 1))
        return out if self.act is None else self.act(out)


def use_products(net, image_shape):
    """Let a network that is not hybridized yet compute such convolutions as products.

    Parameters
    ----------
    net : mxnet.gluon.HybridBlock
        With known shapes, on processors.
    image_shape : tuple of int
        (channels, height, width) of all images to come.
    """
    sizes = _sizes(net, image_shape)
    for block in _blocks(net):
        if type(block) is nn.Conv2D and f"{block.name}_fwd" in sizes:
            seen = _seen(block._kwargs, *sizes[f"{block.name}_fwd"])
            if seen:
                block.seen = seen
                block.__class__ = OnePixelConv2D


@contextlib.contextmanager
def as_convolutions(net):
    """For the time of a with block, let them be MXNet's own again."""
    products = [block for block in _blocks(net) if type(block) is OnePixelConv2D]
    for block in products:
        block.__class__ = nn.Conv2D
    try:
        yield
    finally:
        for block in products:
            block.__class__ = OnePixelConv2D


def _blocks(parent):
    for block in parent._children.values():
        yield block
        yield from _blocks(block)


def _sizes(net, image_shape):
    """Return (height, width) of what goes into convolutions, and comes out, by their names.

    A layer that is used twice has its name twice: what is next to it is left out.
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
            # What goes in is a layer's output, or the images, which have a name of their own.
            size_in = size_of.get(f"{source}_output", size_of.get(source))
            size_out = size_of.get(f"{name}_output")
            if size_in and size_out:
                found[name] = size_in, size_out
    return found


def _seen(options, size_in, size_out):
    """Return what of the kernel lies on the image, or None if more than one pixel comes out."""
    if not _is_plain(options) or size_out != (1, 1) or options["kernel"] == (1, 1):
        return None
    seen = [(pad, pad + size) for pad, size in zip(options["pad"], size_in)]
    sees_all = all(end <= size for (_, end), size in zip(seen, options["kernel"]))
    return seen if sees_all else None


def _is_plain(options):
    return options["num_group"] == 1 and options["dilate"] == (1, 1) and options["layout"] == "NCHW"
