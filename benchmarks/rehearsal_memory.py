"""The peak of a rehearsed training step beside the estimate of its tensors, for twenty networks.

    python benchmarks/rehearsal_memory.py

Two ways to the same number: `rehearse()` counts storages while the step runs with the CPU's
kernels, `estimate_memory` follows the step on tensors without data as a GPU's kernels would do it.
"""

import statistics

import torch
from torch import nn

from course_tools.estimate.memory.estimate_memory import estimate_memory
from course_tools.rehearsal import rehearse

PRECISIONS = ("fp32", "amp")
STEPS = 2  # the optimizer's state is there from the second one on


def conv(inputs, outputs, side=3, **more):
    """Return a convolution that keeps the size of the image."""
    return nn.Conv2d(inputs, outputs, side, padding=side // 2, **more)


def perceptron(width, depth, activation):
    """Return layers of one width."""
    layers = [(nn.Linear(width, width), activation()) for _ in range(depth)]
    return nn.Sequential(*(part for layer in layers for part in layer))


class Rows(nn.Module):
    """A recurrent layer, of which only the rows go on."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer(32, 64, batch_first=True)

    def forward(self, rows):
        """Return what the layer says of each row."""
        return self.layer(rows)[0]


class Residual(nn.Module):
    """Two convolutions around which the input goes, too."""

    def __init__(self, width):
        super().__init__()
        self.first = nn.Sequential(conv(width, width), nn.BatchNorm2d(width), nn.ReLU())
        self.second = nn.Sequential(conv(width, width), nn.BatchNorm2d(width))

    def forward(self, images):
        """Return the sum of both ways."""
        return torch.relu(images + self.second(self.first(images)))


class Attention(nn.Module):
    """Attention written out, with its scores in memory."""

    def __init__(self):
        super().__init__()
        self.read, self.write = nn.Linear(64, 192), nn.Linear(64, 64)

    def forward(self, rows):
        """Return the rows, mixed."""
        query, key, value = self.read(rows).chunk(3, -1)
        return self.write(torch.softmax(query @ key.mT / 8, -1) @ value)


class UNet(nn.Module):
    """Down, up, and the first images beside the last."""

    def __init__(self):
        super().__init__()
        self.first, self.down = conv(3, 16), nn.Conv2d(16, 32, 3, 2, 1)
        self.up, self.last = nn.ConvTranspose2d(32, 16, 2, 2), nn.Conv2d(32, 1, 1)

    def forward(self, images):
        """Return an image."""
        wide = torch.relu(self.first(images))
        narrow = torch.relu(self.down(wide))
        return self.last(torch.cat([wide, torch.relu(self.up(narrow))], 1))


def plain(*layers):
    """Return a function that makes a network of layers, which are made anew each time."""
    return lambda: nn.Sequential(*(layer() for layer in layers))


def pooled():
    """Return the end of a convolutional network."""
    return nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten())


def normalized():
    """Return a layer as transformers have it."""
    return nn.Sequential(nn.LayerNorm(256), nn.Linear(256, 256), nn.GELU())


def lenet():
    """Return the network of LeCun and others, with ReLU."""
    first = nn.Sequential(nn.Conv2d(1, 6, 5), nn.ReLU(), nn.MaxPool2d(2))
    second = nn.Sequential(nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten())
    return nn.Sequential(first, second, nn.Linear(256, 120), nn.ReLU(), nn.Linear(120, 10))


def vgg():
    """Return a small network without shortcuts."""
    first = nn.Sequential(conv(3, 32), nn.ReLU(), conv(32, 32), nn.ReLU(), nn.MaxPool2d(2))
    second = nn.Sequential(conv(32, 64), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten())
    return nn.Sequential(first, second, nn.Linear(4096, 10))


def mobile():
    """Return a depthwise separable convolution."""
    first = nn.Sequential(conv(3, 32), nn.ReLU6(), conv(32, 32, groups=32), nn.BatchNorm2d(32))
    return nn.Sequential(first, nn.ReLU6(), conv(32, 64, 1), pooled())


def grouped():
    """Return convolutions as image generators have them."""
    layers = [(conv(width, 32), nn.GroupNorm(8, 32), nn.SiLU()) for width in (3, 32)]
    return nn.Sequential(*(part for layer in layers for part in layer))


def decoder():
    """Return a network from vectors to images."""
    first = nn.Sequential(nn.Linear(64, 1024), nn.Unflatten(1, (64, 4, 4)))
    second = nn.Sequential(nn.ConvTranspose2d(64, 32, 4, 2, 1), nn.ReLU())
    return nn.Sequential(first, second, nn.ConvTranspose2d(32, 3, 4, 2, 1), nn.Tanh())


def signal():
    """Return a network of one dimension."""
    layers = [(nn.Conv1d(width, 64, 5, padding=2), nn.ReLU()) for width in (8, 64)]
    body = nn.Sequential(*(part for layer in layers for part in layer))
    return nn.Sequential(body, nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(64, 4))


def volume():
    """Return a network of three dimensions."""
    first = nn.Sequential(nn.Conv3d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool3d(2))
    return nn.Sequential(first, nn.Conv3d(8, 16, 3, padding=1), nn.ReLU())


def transformer(dropout):
    """Return a function that makes one layer of a transformer."""
    return lambda: nn.TransformerEncoderLayer(64, 4, 256, dropout, batch_first=True)


def dropout():
    """Return a wide layer of which half is left out."""
    body = nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Dropout(0.5))
    return nn.Sequential(body, nn.Linear(1024, 10))


#: name: a function that makes it, and the shape of its batch
NETWORKS = {
    "linear": (lambda: nn.Linear(1024, 1024), (8, 1024)),
    "perceptron, wide": (lambda: perceptron(1024, 2, nn.ReLU), (64, 1024)),
    "perceptron, deep": (lambda: perceptron(128, 12, nn.ReLU), (256, 128)),
    "perceptron, normalized": (plain(*[normalized] * 4), (256, 256)),
    "perceptron, dropout": (dropout, (512, 256)),
    "LeNet": (lenet, (64, 1, 28, 28)),
    "VGG, small": (vgg, (16, 3, 32, 32)),
    "ResNet, small": (
        plain(lambda: conv(3, 32), *[lambda: Residual(32)] * 2, pooled),
        (16, 3, 32, 32),
    ),
    "MobileNet, small": (mobile, (16, 3, 32, 32)),
    "group norm and SiLU": (grouped, (16, 3, 32, 32)),
    "U-Net, small": (UNet, (8, 3, 32, 32)),
    "decoder": (decoder, (64, 64)),
    "signal": (signal, (32, 8, 128)),
    "volume": (volume, (4, 1, 16, 16, 16)),
    "tanh RNN": (lambda: Rows(nn.RNN), (32, 24, 32)),
    "LSTM": (lambda: Rows(nn.LSTM), (32, 24, 32)),
    "GRU": (lambda: Rows(nn.GRU), (32, 24, 32)),
    "attention, written out": (Attention, (8, 64, 64)),
    "transformer": (transformer(0.0), (8, 64, 64)),
    "transformer, dropout": (transformer(0.1), (8, 64, 64)),
}


def rehearsed_bytes(make, shape, precision):
    """Return the peak of two training steps on a simulated GPU."""
    with rehearse(hide_real=True) as rehearsal:
        network, batch = make().cuda(), torch.ones(shape).cuda()
        optimizer = torch.optim.Adam(network.parameters())
        for _ in range(STEPS):
            with torch.autocast("cuda", torch.float16, enabled=precision == "amp"):
                loss = network(batch).float().sum()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
        return rehearsal.report.peak_bytes[0]


def main():
    """Print a line for each network, and how far the two are apart."""
    print(f"{'rehearsed / estimated':24}" + "".join(f"{each:>8}" for each in PRECISIONS))
    ratios = {precision: [] for precision in PRECISIONS}
    for name, (make, shape) in NETWORKS.items():
        for precision, found in ratios.items():
            one = torch.ones(1, *shape[1:])
            estimated = estimate_memory(make(), one, batch=shape[0], precision=precision)
            found.append(rehearsed_bytes(make, shape, precision) / estimated.tensors_bytes)
        print(f"{name:24}" + "".join(f"{found[-1]:8.2f}" for found in ratios.values()))
    for precision, found in ratios.items():
        close = sum(abs(ratio - 1) <= 0.1 for ratio in found)
        median = statistics.median(found)
        print(f"{precision}: median {median:.2f}, within 10 % {close} of {len(found)}")


if __name__ == "__main__":
    main()
