"""The memory of a simulated GPU: its peak, against PyTorch's own tracker, and its end."""

import gc

import pytest
import torch
from torch import nn

from course_tools.rehearsal import rehearse


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
    mem_tracker = pytest.importorskip("torch.distributed._tools.mem_tracker")
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


def test_memory_that_is_full_raises_at_the_tensor_that_does_not_fit():
    with rehearse(memory="1 MiB") as rehearsal:
        batch = 2**20
        while True:
            try:
                rows = torch.ones(batch, device="cuda")
                break
            except torch.OutOfMemoryError as error:
                assert "CUDA out of memory. Tried to allocate" in str(error)
                batch //= 2
        assert batch == 2**18 and torch.cuda.memory_allocated() == 2**20
        with pytest.raises(torch.OutOfMemoryError, match=r"Tried to allocate 1\.00 MiB"):
            rows * 2
        assert torch.cuda.mem_get_info() == (0, 2**20)  # what is free now, and all
        del rows
        gc.collect()
        assert torch.cuda.memory_allocated() == 0
        assert torch.cuda.mem_get_info() == (2**20, 2**20)
        for too_large in (lambda: torch.zeros(2**50, device="cuda"), torch.ones(2**19).cuda):
            with pytest.raises(torch.OutOfMemoryError, match="CUDA out of memory"):
                too_large()
    assert rehearsal.report.peak_bytes == (2**20,) and rehearsal.report.copies == ()


@pytest.mark.parametrize(
    ("kind", "error", "words"),
    [
        ("cuda", torch.OutOfMemoryError, ("CUDA out of memory", "PYTORCH_CUDA_ALLOC_CONF")),
        ("xpu", torch.OutOfMemoryError, ("XPU out of memory", "Please use `empty_cache`")),
        ("mps", RuntimeError, ("MPS backend out of memory (MPS", "HIGH_WATERMARK_RATIO=0.0")),
    ],
)
def test_full_memory_and_a_gpu_that_is_missing_are_said_in_the_words_of_the_kind(
    kind, error, words
):
    with rehearse(kind, memory="1 KiB"):
        with pytest.raises(RuntimeError) as full:
            torch.ones(512, device=kind)
        assert type(full.value) is error and all(each in str(full.value) for each in words)
        with pytest.raises(RuntimeError) as missing:
            torch.ones(1, device=f"{kind}:3")
        assert ("CUDA" in str(missing.value)) == (kind == "cuda")


def test_the_peak_belongs_to_what_is_alive_then():
    with rehearse() as rehearsal:
        for size in (2**20, 2**21):
            kept = torch.ones(size // 4, device="cuda")
            del kept
        last = torch.ones(2**20, device="cuda")
    assert [each.size_bytes for each in rehearsal.report.peak_by if each.size_bytes] == [2**22]
    assert last.numel() == 2**20 and rehearsal.report.peak_bytes == (2**22,)


def test_a_tensor_that_grows_in_place_takes_more_memory_and_that_line_made_it():
    with rehearse() as rehearsal:
        rows = torch.ones(2, device="cuda")
        rows.resize_(256)
        rows.zero_()
        assert torch.cuda.memory_allocated() == 1024
    (made,) = rehearsal.report.peak_by
    assert "rows.resize_(256)" in made.where
