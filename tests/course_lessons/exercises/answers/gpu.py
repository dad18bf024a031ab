"""Answers to the exercises of lesson 2."""

CONTEXT = """
import torch
import torch.nn.functional as F
from torch import nn

from course_utils import to_device
"""

BUSY = """
def my_epoch(network, loader, optimizer, device):
    total = 0.0
    for pixels, labels in loader:
        {moves}
        loss = F.cross_entropy(network(pixels), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += {loss}
        {after}
    return {result}
"""
BESIDE = """pixels = pixels.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)"""


def busy(**changes):
    """The right answer, with some of its lines changed."""
    result = "float(total) / len(loader)"
    right = {"moves": BESIDE, "loss": "loss.detach()", "after": "", "result": result}
    return BUSY.format(**right | changes)


MINE = """
class Mine(nn.Module):
    def __init__(self):
        super().__init__()
        {mean}
        self.layer = nn.Conv2d(3, 8, kernel_size=3)

    def forward(self, pixels):
        hidden = self.layer(pixels - self.mean)
        return hidden + {noise}


my_network = (Mine(), torch.ones(4, 3, 32, 32))
"""
BUFFER = "self.register_buffer('mean', torch.full((3, 1, 1), 127.0))"
PARAMETER = "self.mean = nn.Parameter(torch.zeros(3, 1, 1))"
ATTRIBUTE = "self.mean = torch.full((3, 1, 1), 127.0)"
LISTED = """
class Several(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = [nn.Linear(4, 4), nn.Linear(4, 2)]

    def forward(self, inputs):
        return self.layers[1](self.layers[0](inputs))


my_network = (Several(), torch.ones(2, 4))
"""
# What reads values, and is right on a GPU: a condition, a mask, lengths, a picture for NumPy.
READING = """
class Reading(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.rnn = nn.Linear(4, 4), nn.LSTM(4, 3, batch_first=True)

    def forward(self, inputs, lengths):
        hidden = self.layer(inputs)
        self.last = hidden
        if hidden.max() > 0:
            hidden = hidden / hidden.max().item()
        self.picture = hidden.detach().cpu().numpy()
        packed = nn.utils.rnn.pack_padded_sequence(
            hidden, lengths.cpu(), batch_first=True, enforce_sorted=False
        )
        return self.rnn(packed)[1][0], hidden[hidden > 0]


network, example = Reading(), (torch.rand(2, 5, 4), torch.tensor([5, 3]))
network(*example)
my_network = (network, example, lambda output: output[0].sum())
"""
# What the positional embedding of many a small transformer does wrong: positions on the CPU.
POSITIONS = """
class Mine(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(8, 4)

    def forward(self, words):
        return words + self.embedding(torch.arange(8{device}))


my_network = (Mine(), torch.ones(2, 8, 4))
"""
OPERATION = """
class Mine(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.{layer}

    def forward(self, inputs):
        return {result}


my_network = (Mine(), {example})
"""
THERE = "torch.randn(hidden.shape, device=hidden.device)"

RIGHT = {
    "busy": [
        busy(result="(total / len(loader)).item()"),
        busy(moves="pixels, labels = (part.to(device, None, True) for part in (pixels, labels))"),
        busy(moves="pixels, labels = to_device((pixels, labels), device, non_blocking=True)"),
    ],
    "moves": [
        MINE.format(mean=BUFFER, noise=THERE),
        "my_network = [nn.LSTM(8, 4), torch.ones(5, 2, 8)]",
        "my_network = nn.Flatten(), torch.arange(3)[None], lambda out: out.float().sum()",
        READING,
        POSITIONS.format(device=", device=words.device"),
        OPERATION.format(
            layer="Linear(4, 4)",
            result="self.layer(inputs)[torch.tensor([1, 0])] * torch.tensor(0.5)",
            example="torch.ones(2, 4)",
        ),
        OPERATION.format(
            layer="MultiheadAttention(4, 2)",
            result="self.layer(inputs, inputs, inputs)[0]",
            example="torch.ones(5, 2, 4)",
        ),
    ],
}

WRONG = {
    "busy": [
        (busy(moves=BESIDE.replace("pixels.to", "pixels.float().to")), "four times the bytes"),
        (busy(moves="pixels, labels = pixels.to(device), labels.to(device)"), "non_blocking=True"),
        (busy(loss="loss.item()", result="total / len(loader)"), "read the sum once"),
        (busy(after="torch.cuda.empty_cache()"), "reuses it by itself"),
        (busy(moves="pass"), "have to be moved"),
        (busy(result="float(total)"), "not the mean loss"),
        (
            busy(loss="loss", result="total.detach().item() / len(loader)"),
            "keeps the graph of every batch",
        ),
        (
            busy(after="if torch.cuda.is_available(): torch.cuda.synchronize()"),
            "synchronize makes the host wait",
        ),
    ],
    "moves": [
        (MINE.format(mean=ATTRIBUTE, noise=THERE), "`mean` is an ordinary attribute"),
        (MINE.format(mean=BUFFER, noise="torch.randn(hidden.shape)"), "torch.randn(hidden.shape)"),
        (MINE.format(mean=BUFFER, noise="0"), "The noise has gone"),
        (MINE.format(mean=PARAMETER, noise=THERE), "an optimizer would train it"),
        (POSITIONS.format(device=""), "self.embedding(torch.arange(8))"),
        (LISTED, "`layers` holds layers that PyTorch does not see"),
        (
            OPERATION.format(
                layer="Linear(4, 4)",
                result="self.layer(inputs) @ torch.ones(4, 2)",
                example="torch.ones(2, 4)",
            ),
            "A tensor is on the CPU",
        ),
        ("my_network = nn.Flatten(), torch.arange(3)[None]", "as the third part"),
        ("my_network = nn.Linear(3, 1)", "a network and an example of its input"),
        ("my_network = nn.Linear(3, 1), 'ones'", "the example, a tensor or several"),
    ],
}
