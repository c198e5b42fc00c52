"""Convolutions of images with few pixels, as the products of matrices that they are.

The last layers of a network for large images see one or four pixels of a small one. oneDNN 2.4,
which MXNet computes with on processors, goes through their whole kernels all the same, most of
which lies on the padding. The parameters and what is computed stay the same.
"""

import contextlib
import json
from collections import Counter

import mxnet as mx
from mxnet.contrib.amp import amp
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


class FourPixelConv2D(nn.Conv2D):
    """A convolution with kernels of 3x3 and a padding of 1, of images with 2x2 pixels.

    Of a row (x0, x1), weights (w0, w1, w2) make w1 x0 + w2 x1 and w0 x0 + w1 x1. Three products are
    enough for that, by Winograd's way to filter (Lavin and Gray 2015, arXiv 1509.09308): with
    a = (w0 - w1) x0, b = w1 (x0 + x1) and c = (w2 - w1) x1 the two are b + c and a + b. Rows and
    columns together take 9 instead of 16.
    """

    def hybrid_forward(self, F, x, weight, bias=None):
        """Sum pixels and weights as above; multiply every image with every kernel nine times."""
        middle = 1 - F.square(F.arange(-1, 2)).reshape((1, 3))  # 0 1 0
        of_weights = F.eye(3) - F.dot(1 - middle, middle, transpose_a=True)
        of_pixels = F.eye(3, 2) + F.eye(3, 2, k=-1)
        of_products = F.reverse(of_pixels, axis=1)
        pixels = F.dot(_in_both(F, of_pixels, 2), x.reshape((-1, 4)), transpose_b=True)
        weights = F.dot(_in_both(F, of_weights, 3), weight.reshape((-1, 9)), transpose_b=True)
        products = F.batch_dot(
            pixels.reshape((9, -1, self.weight.shape[1])),
            weights.reshape((9, self._channels, -1)),
            transpose_b=True,
        ).reshape((9, -1))
        out = F.dot(products, _in_both(F, of_products, 2), transpose_a=True)
        out = out.reshape((-1, self._channels, 2, 2))
        if bias is not None:
            out = F.broadcast_add(out, bias.reshape((1, -1, 1, 1)))
        return out if self.act is None else self.act(out)


def _in_both(F, sums, size):
    """Turn sums along a row of so many into sums along rows and columns."""
    rows, columns = sums.reshape((3, 1, size, 1)), sums.reshape((1, 3, 1, size))
    return F.broadcast_mul(rows, columns).reshape((9, size**2))


PRODUCTS = (OnePixelConv2D, FourPixelConv2D)


def use_products(net, image_shape, num_devices=1):
    """Let a network that is not hybridized yet compute such convolutions as products.

    Parameters
    ----------
    net : mxnet.gluon.HybridBlock
        With known shapes, on processors.
    image_shape : tuple of int
        (channels, height, width) of all images to come.
    num_devices : int
        That compute at the same time: where several do, four pixels are left to oneDNN. MXNet gives
        other products than a layer's to OpenBLAS, which two threads at once can make wait for ever.
    """
    sizes = _sizes(net, image_shape)
    for block in _blocks(net):
        if type(block) is nn.Conv2D and f"{block.name}_fwd" in sizes:
            size_in, size_out = sizes[f"{block.name}_fwd"]
            seen = _seen(block._kwargs, size_in, size_out)
            if seen:
                block.seen = seen
                block.__class__ = OnePixelConv2D
            elif num_devices == 1 and _has_four_pixels(block._kwargs, size_in, size_out):
                block.__class__ = FourPixelConv2D


@contextlib.contextmanager
def as_convolutions(net):
    """For the time of a with block, let them be MXNet's own again."""
    classes = {block: type(block) for block in _blocks(net) if type(block) in PRODUCTS}
    for block in classes:
        block.__class__ = nn.Conv2D
    try:
        yield
    finally:
        for block, kind in classes.items():
            block.__class__ = kind


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


def _has_four_pixels(options, size_in, size_out):
    shape = [options[name] for name in ("kernel", "pad", "stride")]
    is_three = shape == [(3, 3), (1, 1), (1, 1)]
    has_four = is_three and size_in == size_out == (2, 2)
    # For bfloat16 MXNet's AMP fails at operators without inputs, which make the sums here.
    return has_four and _is_plain(options) and not amp._amp_initialized


def _is_plain(options):
    return options["num_group"] == 1 and options["dilate"] == (1, 1) and options["layout"] == "NCHW"
