"""ResNet-50, whose speed everybody publishes: K. He et al., Deep Residual Learning (2015), arXiv:1512.03385."""

import torch
from torch import nn


class Bottleneck(nn.Module):
    """Three convolutions beside a shortcut: 1 x 1 to fewer channels, 3 x 3, and 1 x 1 to four times as many.

    `width` and `stride` are those of the middle convolution, as in version 1.5 of the network.
    """

    def __init__(self, channels: int, width: int, stride: int):
        super().__init__()
        self.body = nn.Sequential(
            *conv_norm(channels, width, 1, 1),
            nn.ReLU(inplace=True),
            *conv_norm(width, width, 3, stride),
            nn.ReLU(inplace=True),
            *conv_norm(width, 4 * width, 1, 1),
        )
        same = stride == 1 and channels == 4 * width
        self.shortcut = nn.Identity() if same else nn.Sequential(*conv_norm(channels, 4 * width, 1, stride))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Map (batch, channels, height, width) to (batch, 4 x width, height / stride, width / stride)."""
        return torch.relu(self.body(images) + self.shortcut(images))


class ResNet50(nn.Module):
    """25,557,032 parameters that sort photographs of 224 x 224 pixels into a thousand classes."""

    def __init__(self, classes: int = 1000):
        super().__init__()
        layers = [*conv_norm(3, 64, 7, 2), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
        channels = 64
        for width, blocks, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
            for block in range(blocks):
                layers.append(Bottleneck(channels, width, stride if block == 0 else 1))
                channels = 4 * width
        self.layers = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, classes))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Map images, (batch, 3, height, width), to scores, (batch, classes)."""
        return self.layers(images)


def conv_norm(channels: int, out: int, side: int, stride: int) -> tuple[nn.Module, nn.Module]:
    """Return a convolution without a bias, which keeps the size at stride 1, and a batch norm."""
    return nn.Conv2d(channels, out, side, stride, side // 2, bias=False), nn.BatchNorm2d(out)
