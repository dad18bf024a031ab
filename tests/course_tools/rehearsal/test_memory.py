"""The peak of the tensors' memory, against PyTorch's own tracker on the CPU."""

import pytest
import torch
from torch import nn

from course_tools.rehearsal import rehearse

mem_tracker = pytest.importorskip("torch.distributed._tools.mem_tracker")


class Rows(nn.Module):
    """The rows of a recurrent layer, without its state."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, rows):
        return self.layer(rows)[0]


NETWORKS = {
    "layers": (lambda: nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 64)), (32, 64)),
    "convolution": (
        lambda: nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2)),
        (8, 3, 16, 16),
    ),
    "tanh RNN": (lambda: Rows(nn.RNN(16, 32, batch_first=True)), (8, 12, 16)),
    "LSTM": (lambda: Rows(nn.LSTM(16, 32, batch_first=True)), (8, 12, 16)),
    "transformer": (
        lambda: nn.TransformerEncoderLayer(32, 4, 64, batch_first=True),
        (4, 10, 32),
    ),
}


def training(name, device):
    """Return network, optimizer, batch, and a function that trains for a step."""
    make, shape = NETWORKS[name]
    torch.manual_seed(0)
    network = make().to(device)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1, momentum=0.9)
    batch = torch.ones(shape).to(device)

    def step():
        network(batch).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()

    return network, optimizer, batch, step


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", NETWORKS)
def test_the_peak_of_a_training_step_is_what_pytorchs_tracker_counts(name):
    *tracked, step = training(name, "cpu")
    tracker = mem_tracker.MemTracker()
    tracker.track_external(*tracked)
    with tracker:
        step()
    expected = tracker.get_tracker_snapshot("peak")[torch.device("cpu")]["Total"]
    del tracked, step, tracker
    with rehearse() as rehearsal:
        *kept, step = training(name, "cuda")
        step()
    assert rehearsal.report.peak_bytes == (expected,) and kept


@pytest.mark.parametrize("number", [1, 100, 3_000])
def test_the_lines_of_the_peak_add_up_to_it_for_tensors_of_any_size(number):
    with rehearse() as rehearsal:
        kept = [torch.zeros(250, device="cuda") for _ in range(number)]
    report = rehearsal.report
    assert report.peak_bytes == (sum(each.nbytes for each in kept),)
    assert sum(line.size_bytes for line in report.peak_by) >= 0.98 * report.peak_bytes[0]
