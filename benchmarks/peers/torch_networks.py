"""The compared networks in PyTorch, layer by layer as in Gluon; parameter counts are compared."""

from torch import nn


def create_network(name):
    """Create ``resnet18`` or ``fast``."""
    return {"resnet18": ResNet18, "fast": FastNetwork}[name]()


def normalised(channels):
    """BatchNorm with Gluon's defaults."""
    return nn.BatchNorm2d(channels, eps=1e-5, momentum=0.1)


class BasicBlock(nn.Module):
    """Two 3x3 convolutions and a shortcut (He et al. 2016, arXiv 1512.03385)."""

    def __init__(self, width_in, width, stride):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(width_in, width, 3, stride, 1, bias=False),
            normalised(width),
            nn.ReLU(inplace=True),
            nn.Conv2d(width, width, 3, 1, 1, bias=False),
            normalised(width),
        )
        self.shortcut = nn.Sequential()
        if stride > 1 or width_in != width:
            self.shortcut = nn.Sequential(
                nn.Conv2d(width_in, width, 1, stride, bias=False), normalised(width)
            )
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        """Map (n, width_in, h, w) to (n, width, h / stride, w / stride)."""
        return self.relu(self.body(x) + self.shortcut(x))


class ResNet18(nn.Sequential):
    """The ImageNet network with 10 classes, as GluonCV's ``resnet18_v1``."""

    def __init__(self):
        stem = [
            nn.Conv2d(3, 64, 7, 2, 3, bias=False),
            normalised(64),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(3, 2, 1),
        ]
        blocks, width_in = [], 64
        for stage, width in enumerate((64, 128, 256, 512)):
            blocks += [
                BasicBlock(width_in, width, 1 if stage == 0 else 2),
                BasicBlock(width, width, 1),
            ]
            width_in = width
        head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10)]
        super().__init__(*stem, *blocks, *head)


class FastNetwork(nn.Sequential):
    """As ``--network fast``: fixed whitening, three blocks of two convolutions, a linear layer."""

    def __init__(self, widths=(32, 96, 256)):
        whitening = nn.Conv2d(3, 32, 3, bias=False)
        whitening.weight.requires_grad_(False)
        layers, width_in = [whitening, nn.ReLU()], 32
        for width in widths:
            for first in (True, False):
                norm = nn.BatchNorm2d(width)
                norm.weight.requires_grad_(False)
                layers.append(nn.Conv2d(width_in, width, 3, padding=1, bias=False))
                layers += [nn.MaxPool2d(2)] if first else []
                layers += [norm, nn.ReLU(inplace=True)]
                width_in = width
        layers += [nn.AdaptiveMaxPool2d(1), nn.Flatten(), nn.Linear(width_in, 10, bias=False)]
        super().__init__(*layers)

    def forward(self, x):
        """Map (n, 3, 32, 32) to scores (n, 10)."""
        return super().forward(x) / 9
