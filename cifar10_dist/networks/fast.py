"""``--network fast``: a small plain convolution network that learns CIFAR-10 within minutes.

Its parts are from two records of short training: Page 2018 ("How to train your ResNet",
myrtle.ai; fixed whitening layer, Nesterov SGD with one rise and fall of the rate, label smoothing,
averaging of weights, flip at test time) and Jordan 2024 (arXiv 2404.00498; identity
initialization, BatchNorm without scale, faster biases, alternating flip,
lookahead). The widths are chosen for minutes on a few processor cores instead of seconds on a GPU.
"""

import math

import mxnet as mx
import numpy as np
from mxnet.gluon import HybridBlock, nn

PATCH = 3  # side of the whitened patches, in pixels
# The strongest patterns of such patches. With both signs they make 32 channels: oneDNN is fastest
# with multiples of 16 (with 24, from 2x2 pixels, the next BatchNorm was 100 times slower).
PATTERNS = 16
BIAS_LR = 64  # times the learning rate


def num_to_whiten(image_shape):
    """Return how many images the whitening is computed from: fewer if they are large."""
    return max(1, min(5000, 5000 * 32 * 32 // math.prod(image_shape[1:])))


class FastNetwork(HybridBlock):
    """Whitening, then three blocks of two convolutions each, then a linear layer.

    Parameters
    ----------
    classes : int
    channels : int
        Channels of the images.
    widths : tuple of int
        Channels of the three blocks.
    """

    def __init__(self, classes, channels=3, widths=(32, 96, 256), **kwargs):
        super().__init__(**kwargs)
        self.classes = classes
        with self.name_scope():
            patterns = 2 * min(PATTERNS, channels * PATCH**2)
            # Nothing is learned here, not even a bias: backward need not reach this layer.
            self.whitening = nn.Conv2D(patterns, PATCH, in_channels=channels, use_bias=False)
            self.whitening.weight.grad_req = "null"
            self.body = nn.HybridSequential(prefix="")
            self.body.add(nn.Activation("relu"))
            width_in = patterns
            for width in widths:
                for first in (True, False):
                    self.body.add(
                        nn.Conv2D(
                            width,
                            3,
                            padding=1,
                            in_channels=width_in,
                            use_bias=False,
                            weight_initializer=Identity(),
                        )
                    )
                    if first:
                        self.body.add(nn.MaxPool2D())
                    self.body.add(nn.BatchNorm(scale=False, in_channels=width))
                    self.body.add(nn.Activation("relu"))
                    width_in = width
            self.body.add(nn.GlobalMaxPool2D())
            self.output = nn.Dense(classes, use_bias=False, in_units=width_in)
        for name, param in self.body.collect_params().items():
            if name.endswith("beta"):
                param.lr_mult = BIAS_LR
                param.wd_mult = 1 / BIAS_LR

    def hybrid_forward(self, F, x):
        """Return the scores, shape (n, classes), of images (n, C, H, W)."""
        return self.output(self.body(self.whitening(x))) / 9

    def whiten(self, images):
        """Set the first layer so that its outputs are uncorrelated and of equal size.

        Parameters
        ----------
        images : ndarray of float32, shape (n, C, H, W)
            As the network gets them.
        """
        weight = self.whitening.weight
        patches = np.lib.stride_tricks.sliding_window_view(images, (PATCH, PATCH), axis=(2, 3))
        patches = patches[:, :, ::2, ::2].transpose(0, 2, 3, 1, 4, 5)
        patches = patches.reshape(-1, weight.shape[1] * PATCH**2)
        values, vectors = np.linalg.eigh(patches.T @ patches / len(patches))  # from small to large
        strongest = slice(-(weight.shape[0] // 2), None)
        patterns = (vectors[:, strongest] / np.sqrt(values[strongest] + 5e-4)).T
        patterns = patterns.reshape(-1, *weight.shape[1:])
        weight.set_data(mx.nd.array(np.concatenate([patterns, -patterns]), dtype="float32"))


class Identity(mx.init.Initializer):
    """Initialize a convolution so that its first outputs are copies of its inputs."""

    def _init_weight(self, name, weight):
        width_in, size = weight.shape[1], weight.shape[-1]
        bound = 1 / np.sqrt(width_in * size * size)
        mx.nd.random.uniform(-bound, bound, out=weight)
        values = weight.asnumpy()
        values[:width_in] = 0
        for i in range(min(weight.shape[:2])):
            values[i, i, size // 2, size // 2] = 1
        weight[:] = values
