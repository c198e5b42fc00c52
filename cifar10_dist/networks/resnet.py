"""``--network resnet``: what MXNet's older examples build from the same flags.

Their ``symbols/resnet.py`` has two kinds of residual networks (He et al. 2016, arXiv 1603.05027),
and takes the height of the images to choose one.
"""

from gluon_dist.common.errors import UsageError

from gluoncv.model_zoo.cifarresnet import CIFARResNetV2, get_cifar_resnet
from gluoncv.model_zoo.resnet import BasicBlockV2, BottleneckV2, ResNetV2

# For images of more than 28 pixels: layers, and blocks in each of the four stages.
IMAGENET = {
    18: (2, 2, 2, 2),
    34: (3, 4, 6, 3),
    50: (3, 4, 6, 3),
    101: (3, 4, 23, 3),
    152: (3, 8, 36, 3),
    200: (3, 24, 36, 3),
    269: (3, 30, 48, 8),
}


def create_resnet(num_layers, num_classes, height):
    """Return a ResNet whose parameters are not drawn yet.

    Parameters
    ----------
    num_layers : int or None
        None means 20, or 50 for images of more than 32 pixels.
    num_classes : int
    height : int
        Height of the images.

    Raises
    ------
    UsageError
        If no ResNet has so many layers.
    """
    layers = num_layers or (50 if height > 32 else 20)
    if height > 28 and layers in IMAGENET:
        block, width = (BottleneckV2, 4) if layers >= 50 else (BasicBlockV2, 1)
        channels = [64, *(width * x for x in (64, 128, 256, 512))]
        # Small images are not made smaller before the first stage.
        return ResNetV2(block, IMAGENET[layers], channels, num_classes, thumbnail=height <= 32)
    if layers >= 164 and (layers - 2) % 9 == 0:
        blocks = [(layers - 2) // 9] * 3
        return CIFARResNetV2(BottleneckV2, blocks, [16, 64, 128, 256], num_classes)
    if 8 <= layers < 164 and (layers - 2) % 6 == 0:
        return get_cifar_resnet(2, layers, classes=num_classes)
    raise UsageError(
        f"--num-layers {layers}: a CIFAR ResNet has 6n+2 layers (8, 14, 20, 32, 56, 110), from 164 "
        "on 9n+2; others, for images of more than 28 pixels, have "
        f"{', '.join(map(str, IMAGENET))}"
    )
