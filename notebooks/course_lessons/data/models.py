"""The models that the lessons train."""

import torch
import torch.nn.functional as F
from torch import nn


class AirRNN(nn.Module):
    """A vanilla RNN with a linear head that predicts the next step of a series at every step.

    It has 481 parameters: the RNN holds 20 x 1 + 20 x 20 weights and 2 x 20 biases, the head 20
    weights and a bias. `hidden_size` is the count of numbers that the RNN remembers between steps.
    """

    def __init__(self, hidden_size: int = 20):
        super().__init__()
        self.rnn = nn.RNN(input_size=1, hidden_size=hidden_size, batch_first=True)
        self.head = nn.Linear(hidden_size, 1)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """Map values, (batch, steps, 1), to the values one step later, of the same shape."""
        hidden, _ = self.rnn(inputs)  # (batch, steps, hidden_size)
        return self.head(hidden)

    @torch.no_grad()
    def forecast(self, history: torch.Tensor, steps: int) -> torch.Tensor:
        """Continue a history, (months,), by feeding the model its own answers: (steps,).

        Both are on the model's scale and device.

        Raises:
            ValueError: the history is empty or not one-dimensional, or fewer than one step was
                requested.
        """
        if history.ndim != 1 or len(history) == 0 or steps < 1:
            raise ValueError(
                f"a forecast needs a history of shape (months,) and at least 1 step, "
                f"but got shape {tuple(history.shape)} and {steps} steps."
            )
        hidden, state = self.rnn(history.view(1, -1, 1))
        answers = [self.head(hidden[:, -1:])]
        for _ in range(steps - 1):
            hidden, state = self.rnn(answers[-1], state)
            answers.append(self.head(hidden))
        return torch.cat(answers, dim=1).flatten()


class ImageCNN(nn.Module):
    """A small convolutional network for 3 x 32 x 32 images in ten classes: 64,326 parameters.

    It is LeNet-5 for colour images, with one more layer that is applied twice: 5 x 5 to 6 channels,
    pooling, 5 x 5 to 16 channels, pooling, the same 3 x 3 from 16 to 16 channels two times, and a
    head of 120, 84 and 10.
    Source of the shape: Y. LeCun et al., Gradient-Based Learning Applied to Document Recognition
    (1998), figure 2.
    """

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 6, kernel_size=5)
        self.conv2 = nn.Conv2d(6, 16, kernel_size=5)
        self.conv3 = nn.Conv2d(16, 16, kernel_size=3, padding=1)
        self.head = nn.Sequential(
            nn.Flatten(),
            nn.Linear(400, 120),
            nn.ReLU(),
            nn.Linear(120, 84),
            nn.ReLU(),
            nn.Linear(84, 10),
        )

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Map pixels of 0 to 255, (batch, 3, 32, 32), to a score for each class, (batch, 10).

        Pixels are cheapest to move as uint8, so the model itself scales them to -1 to 1, on its
        device.
        """
        hidden = images.to(self.conv1.weight.dtype) / 127.5 - 1
        hidden = torch.relu(F.max_pool2d(self.conv1(hidden), 2))  # (batch, 6, 14, 14)
        hidden = torch.relu(F.max_pool2d(self.conv2(hidden), 2))  # (batch, 16, 5, 5)
        hidden = torch.relu(self.conv3(hidden))
        hidden = torch.relu(self.conv3(hidden))
        return self.head(hidden)


class ResNetBlock(nn.Module):
    """Convolutions of 1 x 1, 3 x 3 and 1 x 1 beside a shortcut, with four times `width` channels.

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
        self.shortcut = (
            nn.Identity() if same else nn.Sequential(*conv_norm(channels, 4 * width, 1, stride))
        )

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Map (batch, channels, height, width) to (batch, 4 x width, smaller height and width)."""
        return torch.relu(self.body(images) + self.shortcut(images))


class ResNet50(nn.Module):
    """ResNet-50: it sorts photographs of 224 x 224 pixels into a thousand classes.

    It has 25,557,032 parameters, and its speed is published for most devices.
    Source: K. He et al., Deep Residual Learning (2015), arXiv:1512.03385.
    """

    def __init__(self):
        super().__init__()
        layers = [*conv_norm(3, 64, 7, 2), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
        channels = 64
        for width, blocks, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
            for block in range(blocks):
                layers.append(ResNetBlock(channels, width, stride if block == 0 else 1))
                channels = 4 * width
        self.layers = nn.Sequential(
            *layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 1000)
        )

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Map images, (batch, 3, height, width), to scores, (batch, classes)."""
        return self.layers(images)


def conv_norm(channels: int, out: int, side: int, stride: int) -> tuple[nn.Module, nn.Module]:
    """Return a convolution without a bias, which keeps the size at stride 1, and a batch norm."""
    return nn.Conv2d(channels, out, side, stride, side // 2, bias=False), nn.BatchNorm2d(out)


def count_parameters(model: nn.Module) -> int:
    """Return how many numbers of the model are trained."""
    return sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)
