"""Create a network from its name, ready to train."""

import contextlib
import json

from gluon_dist.common.errors import UsageError, last_line

import mxnet as mx

from networks.by_symbol import SymbolNetwork
from networks.fast import FastNetwork
from networks.one_pixel import as_convolutions, use_products

BATCH = 2  # images that a network is tried with
SIZES = 32, 224, 299, 331  # in pixels, for which CIFAR-10's and ImageNet's networks were made
# What a network raises if it does not take what it is tried with.
FAILURES = (
    *(mx.MXNetError, AttributeError, AssertionError, LookupError, TypeError, ValueError),
    NotImplementedError,
)


def get_network(name, num_classes, image_shape, ctx=None, num_layers=None):
    """Return a network that takes images of a shape, ready to train.

    Parameters
    ----------
    name : str
        A GluonCV model, ``fast``, ``resnet`` with ``num_layers``, as in MXNet's older examples,
        or a symbol's file, ``PATH-symbol.json``.
    num_classes : int
    image_shape : tuple of int
        (channels, height, width).
    ctx : list of mxnet.Context, optional
        Devices that each get all parameters, drawn at random; without them only their shapes are
        known.
    num_layers : int, optional
        For ``resnet`` only, see :func:`resnet.create_resnet`.

    Returns
    -------
    mxnet.gluon.HybridBlock
        Hybridized if `ctx` is given; maps (n, C, H, W) to (n, num_classes).

    Raises
    ------
    UsageError
        If there is no such network, or it does not classify images of this shape.
    """
    net = _checked(name, num_classes, image_shape, num_layers)
    if ctx is None:
        return net
    # All shapes are known: parameters are drawn now, with no first batch, and so no pass outside
    # autograd.record() that would leave weights in a layout that a dist store cannot take.
    try:
        net.initialize(mx.init.Xavier(), ctx=ctx)
    except mx.MXNetError:
        raise UsageError(
            f"--network {name}: too large for --num-classes {num_classes}, or for the memory"
        ) from None
    if ctx[0].device_type == "cpu":
        use_products(net, image_shape)
    hybridize(net, ctx)
    if starts_with_batchnorm(net):
        net.register_forward_pre_hook(_ask_for_gradient)
    return net


def hybridize(net, ctx):
    """Let MXNet compile the network at its first use, for batches of one shape."""
    # MXNet hands gradients out after so many operators; GPUs keep its default, 15 (not tried).
    bulk = {"backward_bulk_size": 4} if ctx[0].device_type == "cpu" else {}
    net.hybridize(static_alloc=True, static_shape=True, **bulk)


def _checked(name, num_classes, image_shape, num_layers):
    """Return the network if it can be trained on images of this shape; else raise."""
    with mx.name.NameManager():  # parameter names that do not depend on what was created before
        net = _named(name, num_classes, image_shape, num_layers)
    try:
        operators, outputs = _trace(net, image_shape)
    except FAILURES as error:
        raise UsageError(_why_not(name, num_classes, image_shape, num_layers, error)) from None
    if any("quantize" in operator for operator in operators):
        raise UsageError(f"--network {name}: is quantized: whole numbers cannot be trained")
    if len(outputs) != 1 or len(outputs[0]) != 2 or outputs[0][0] != BATCH:
        raise UsageError(f"--network {name}: does not give scores of the classes alone")
    if outputs[0][1] != num_classes:
        raise UsageError(f"--num-classes {num_classes}: {name} has {outputs[0][1]} classes")
    return net


def _trace(net, image_shape):
    """Set the shapes of all parameters; return the operators, and the shapes of all outputs."""
    shape = BATCH, *image_shape
    with mx.name.NameManager(), contextlib.redirect_stdout(None):  # MXNet prints when it fails
        net.infer_shape(mx.nd.zeros(shape))
        outputs = net(mx.sym.var("data"))
        outputs = outputs if isinstance(outputs, mx.sym.Symbol) else mx.sym.Group(list(outputs))
        operators = {node["op"] for node in json.loads(outputs.tojson())["nodes"]}
        return operators, outputs.infer_shape(data=shape)[1]


def _why_not(name, num_classes, image_shape, num_layers, error):
    """Return which shape a network takes instead, found by trying; else why it failed."""
    from networks.of_gluoncv import network_of_gluoncv

    refused = f"--network {name}: does not take images of --image-shape {_text(image_shape)}"
    for size in SIZES:
        shape = image_shape[0], size, size
        with contextlib.suppress(UsageError, *FAILURES):
            net = _named(name, num_classes, shape, num_layers)
            if _trace(net, shape)[1] == [(BATCH, num_classes)]:
                return f"{refused}; it takes {_text(shape)}"
        with contextlib.suppress(UsageError, *FAILURES):
            ((_, found),) = _trace(network_of_gluoncv(name), shape)[1]
            return f"--num-classes {num_classes}: {name} has {found} classes"
    return f"{refused}, nor of other sizes ({last_line(error)})"


def _text(image_shape):
    return ",".join(map(str, image_shape))


def network_json(net):
    """Return the network as MXNet's ``-symbol.json``, the same text at any time of a training.

    MXNet also writes how often the network was built before: these counts are set to zero.
    """
    with mx.name.NameManager(), as_convolutions(net):
        graph = json.loads(net(mx.sym.var("data")).tojson())  # without the casts of --dtype
    for node in graph["nodes"]:
        node["inputs"] = [[source, output, 0] for source, output, _ in node["inputs"]]
    return json.dumps(graph, indent=1)


def starts_with_batchnorm(net):
    """Return whether the first layer is a BatchNorm, as in the ResNets of version 2."""
    while net._children:
        net = next(iter(net._children.values()))
    return isinstance(net, mx.gluon.nn.BatchNorm)


def _ask_for_gradient(net, images):
    """Let backward reach a BatchNorm that is the first layer.

    MXNet updates its running mean and variance in the backward pass. That pass skips a first layer
    with nothing to learn, unless the images ask for a gradient.
    """
    if mx.autograd.is_recording():
        images[0].attach_grad()


def _named(name, num_classes, image_shape, num_layers):
    """Return the network of this name, its parameters not drawn yet."""
    if num_layers is not None and name != "resnet":
        raise UsageError(f"--num-layers goes with --network resnet, not {name}")
    if name == "fast":
        return FastNetwork(num_classes, image_shape[0])
    if name.endswith(".json"):
        return SymbolNetwork(name)
    # Here, as it takes a second to import.
    from networks.of_gluoncv import network_of_gluoncv
    from networks.resnet import create_resnet

    if name == "resnet":
        return create_resnet(num_layers, num_classes, height=image_shape[1])
    return network_of_gluoncv(name, num_classes)
