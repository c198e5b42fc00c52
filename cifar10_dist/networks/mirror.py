"""``--flip-test``: a test of each image and its mirror image."""


class MirrorAverage:
    """A network whose scores are the mean of those of an image and of its mirror image.

    Parameters
    ----------
    net : callable
        Takes images (n, C, H, W) to scores (n, classes).
    """

    def __init__(self, net):
        self._net = net

    def __call__(self, images):
        """Return the mean scores, shape (n, classes)."""
        return (self._net(images) + self._net(images.flip(axis=3))) / 2


def network_to_test(net, flip_test, is_last):
    """Return what to evaluate after an epoch: the network, or its :class:`MirrorAverage`.

    Parameters
    ----------
    net : mxnet.gluon.HybridBlock
    flip_test : {'0', '1', 'last'}
        Of ``--flip-test``.
    is_last : bool
        Whether the epoch is the last one.
    """
    averages = flip_test == "1" or (flip_test == "last" and is_last)
    return MirrorAverage(net) if averages else net
