"""Create a network from its name, ready to train."""

import contextlib
import json

from gluon_dist.common.errors import UsageError

import mxnet as mx

from networks.by_symbol import SymbolNetwork
from networks.fast import FastNetwork
from networks.one_pixel import as_convolutions, use_products


def network_by_name(name, num_classes, image_shape, ctx, num_layers=None):
    """Create a network, with the parameters drawn and placed on every device.

    Parameters
    ----------
    name : str
        A GluonCV model, ``fast``, ``resnet`` with ``num_layers``, as in MXNet's older examples,
        or a symbol's file, ``PATH-symbol.json``.
    num_classes : int
    image_shape : tuple of int
        (channels, height, width).
    ctx : list of mxnet.Context
    num_layers : int, optional
        For ``resnet`` only, see :func:`resnet.create_resnet`.

    Returns
    -------
    mxnet.gluon.HybridBlock
        Hybridized; maps (n, C, H, W) to (n, num_classes).

    Raises
    ------
    UsageError
        If there is no such network, or it does not classify images of this shape.
    """
    net = build_network(name, num_classes, image_shape, num_layers)
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
    # MXNet tells of gradients after so many operators; on GPUs its 15 are kept (untried).
    bulk = {"backward_bulk_size": 4} if ctx[0].device_type == "cpu" else {}
    net.hybridize(static_alloc=True, static_shape=True, **bulk)


def build_network(name, num_classes, image_shape, num_layers=None):
    """Build a network as :func:`network_by_name` does: shapes are known, no parameters drawn."""
    with mx.name.NameManager():  # parameter names that do not depend on what was created before
        net = _build(name, num_classes, image_shape, num_layers)
    try:
        with contextlib.redirect_stdout(None):  # MXNet prints the shapes when it fails
            net.infer_shape(mx.nd.zeros((1,) + tuple(image_shape)))
        with mx.name.NameManager():
            scores = net(mx.sym.var("data"))
        has_one_output = isinstance(scores, mx.sym.Symbol) and len(scores.list_outputs()) == 1
    except (mx.MXNetError, AttributeError, AssertionError, TypeError, ValueError) as error:
        shape = ",".join(map(str, image_shape))
        reason = str(error).strip().splitlines()[-1][:200]
        raise UsageError(
            f"--network {name}: does not take images of --image-shape {shape} ({reason})"
        ) from None
    if not has_one_output:
        raise UsageError(f"--network {name}: does not give scores of the classes alone")
    ((_, *classes),) = scores.infer_shape(data=(1, *image_shape))[1]
    if classes != [num_classes]:
        found = "x".join(map(str, classes))
        raise UsageError(f"--num-classes {num_classes}: {name} has {found} classes")
    return net


def network_json(net):
    """Return the network as MXNet's ``-symbol.json``, the same text at any time of a training.

    MXNet writes into the file how often the network was built before. Nobody needs those counts;
    they are set to zero.
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


def _build(name, num_classes, image_shape, num_layers):
    if num_layers is not None and name != "resnet":
        raise UsageError(f"--num-layers goes with --network resnet, not {name}")
    if name == "fast":
        return FastNetwork(num_classes, image_shape[0])
    if name.endswith(".json"):
        return SymbolNetwork(name)
    # Here, as it takes a second to import.
    from gluoncv.model_zoo import get_model, get_model_list

    from networks.resnet import create_resnet

    if name == "resnet":
        return create_resnet(num_layers, num_classes, height=image_shape[1])
    if name.lower() not in get_model_list():
        raise UsageError(
            f"--network {name}: not a GluonCV model; try resnet18_v1, cifar_resnet20_v2, "
            "mobilenet0.25, or resnet with --num-layers 20"
        )
    try:
        return get_model(name, classes=num_classes)
    except (TypeError, ImportError, AssertionError, ValueError) as error:
        raise UsageError(
            f"--network {name}: not a network that classifies images ({error})"
        ) from None
