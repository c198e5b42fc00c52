"""The network that the command line asks for."""

from collections import Counter

import mxnet as mx

from ground.failure import UsageError
from networks.by_name import build_network, hybridize, network_by_name
from networks.by_symbol import SymbolNetwork
from networks.fast import num_to_whiten


def create_network(args, ctx, images):
    """Create the network, with the same weights on every device of every worker.

    Parameters
    ----------
    args : argparse.Namespace
    ctx : list of mxnet.Context
    images : sources.images.ImageSource
        ``--network fast`` computes its first layer from some of them.

    Returns
    -------
    mxnet.gluon.HybridBlock
        Maps images (n, C, H, W) to scores (n, num_classes).
    """
    mx.random.seed(args.seed)
    net = network_by_name(args.network, args.num_classes, args.image_shape, ctx, args.num_layers)
    if args.network == "fast":
        net.whiten(images.sample(num_to_whiten(args.image_shape)))
    return net


def create_from_symbol(args, name, text, ctx):
    """Create the network of a symbol, with zeros for parameters: a checkpoint has them.

    Parameters
    ----------
    args : argparse.Namespace
    name, text : str
        Path and content of a ``-symbol.json`` that ends in a ``SoftmaxOutput``.
    ctx : list of mxnet.Context

    Returns
    -------
    networks.by_symbol.SymbolNetwork
        Maps images (n, C, H, W) to scores (n, num_classes).

    Raises
    ------
    UsageError
        If it does not go with the options.
    """
    if args.dtype in ("bfloat16", "float16"):
        raise UsageError(
            f"--dtype {args.dtype}: {name} is read as it is, without casts; take float32"
        )
    net = SymbolNetwork(name, text, args.image_shape, args.num_classes)
    for param in net.collect_params().values():
        param.initialize(mx.init.Zero(), ctx=ctx)
    hybridize(net, ctx)
    return net


def is_as_named(args, net):
    """Tell whether a network learns the weights that the one of ``--network`` would learn.

    Only their shapes are compared. In its first stage, a ResNet of MXNet's older examples may have
    a shortcut of 1x1 pixels more.
    """
    try:
        named = build_network(args.network, args.num_classes, args.image_shape, args.num_layers)
    except UsageError:  # here is no such network
        return False
    shapes, expected = _shapes(net), _shapes(named)
    return not expected - shapes and all(s[2:] == (1, 1) for s in shapes - expected)


def _shapes(net):
    learned = (param for param in net.collect_params().values() if param.grad_req != "null")
    return Counter(param.shape for param in learned if len(param.shape) > 1)
