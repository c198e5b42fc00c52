"""The network that the command line asks for."""

import mxnet as mx

from networks.by_name import get_network
from networks.fast import num_to_whiten


def create_network(args, ctx, images):
    """Return the network, with the same weights on every device of every worker.

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
    net = get_network(args.network, args.num_classes, args.image_shape, ctx, args.num_layers)
    if args.network == "fast":
        net.whiten(images.sample(num_to_whiten(args.image_shape)))
    return net
