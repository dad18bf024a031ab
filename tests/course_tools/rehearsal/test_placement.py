"""Where tensors are, and how they move between devices."""

import gc

import pytest
import torch
from torch import nn

from course_tools.rehearsal import rehearse


def test_the_collector_of_cycles_does_not_move_a_tensor_home():
    with rehearse():
        rows = torch.ones(1000, device="cuda")
        for _ in range(3):
            cycle = [rows.untyped_storage()]
            cycle.append(cycle)
            del cycle
            gc.collect()
            assert rows.device.type == "cuda" and torch.cuda.memory_allocated() == 4000
            rows + 1
        del rows
        torch.ones(1, device="cuda")  # what the collector was kept from is let go
        assert torch.cuda.memory_allocated() == 0


def test_two_gpus_are_two_devices():
    with rehearse(gpus=2):
        with torch.cuda.device(1):
            rows = torch.ones(2).cuda()
        assert rows.device == torch.device("cuda:1")
        with pytest.raises(RuntimeError, match="at least two devices"):
            rows + torch.ones(2).cuda()
        network = nn.DataParallel(nn.Linear(2, 2).cuda())
        network(torch.ones(4, 2).cuda()).sum().backward()
        assert network.module.weight.grad.device == torch.device("cuda:0")


def test_float64_is_refused_on_a_mac():
    with rehearse("mps"):
        with pytest.raises(TypeError, match="MPS framework doesn't support float64"):
            torch.ones(2, dtype=torch.float64).to("mps")
        with pytest.raises(TypeError, match="MPS framework doesn't support float64"):
            torch.zeros(2, dtype=torch.float64, device="mps")
        with pytest.raises(TypeError, match="MPS framework doesn't support float64"):
            torch.ones(2).to("mps", torch.float64)
        # what arrives counts, not what is sent
        assert torch.ones(2, dtype=torch.float64).to("mps", torch.float32).is_mps


@pytest.mark.parametrize("non_blocking", [False, True])
@pytest.mark.parametrize(
    ("source", "target"),
    [("cpu", "cuda:0"), ("pinned", "cuda:0"), ("cuda:0", "cpu"), ("cuda:0", "cuda:1")],
)
def test_a_copy_into_a_tensor_is_counted_as_a_move(source, target, non_blocking):
    def seen(copy):
        with rehearse(gpus=2) as rehearsal:
            values = torch.ones(8).pin_memory() if source == "pinned" else torch.ones(8)
            into = torch.zeros(8, device=target)
            values = values.to(source) if source == "cuda:0" else values
            before = rehearsal.report
            copy(into, values)
        report = rehearsal.report
        copies, waits = report.copies[len(before.copies) :], report.waits[len(before.waits) :]
        return [(line.what, line.size_bytes) for line in copies], [line.what for line in waits]

    moved = seen(lambda into, values: values.to(target, non_blocking=non_blocking))
    kinds = {"cpu": "to the GPU, from pageable memory", "pinned": "to the GPU, from pinned memory"}
    kind = kinds.get(source, "to the CPU" if target == "cpu" else "from GPU to GPU")
    waits = source[:4] != target[:4] and not non_blocking  # between GPUs the host never waits
    assert moved == ([(kind, 32)], [f"copy to the {'CPU' if target == 'cpu' else 'GPU'}"] * waits)
    if target == "cpu":  # PyTorch moves into pinned memory, and `into` is pageable: CUDA waits
        moved = moved[0], ["copy to the CPU"]
    assert seen(lambda into, values: into.copy_(values, non_blocking)) == moved
    together = {"non_blocking": non_blocking}
    assert seen(lambda into, values: torch._foreach_copy_([into], [values], **together)) == moved


@pytest.mark.parametrize(("home", "away"), [("cpu", "cuda"), ("cuda", "cpu")])
def test_a_gradient_comes_back_to_where_its_tensor_is_and_that_is_a_copy_too(home, away):
    with rehearse() as rehearsal:
        rows = torch.ones(3, device=home, requires_grad=True)
        (2 * rows.to(away)).sum().backward()
        assert rows.grad.device.type == home
    copies = sorted(line.what for line in rehearsal.report.copies)
    assert copies == ["to the CPU", "to the GPU, from pageable memory"]


@pytest.mark.filterwarnings("ignore:Sparse CS. tensor support is in beta state")
@pytest.mark.parametrize(
    ("form", "size_bytes"),
    # the values and two indices each, or those of each row, or column, and where it ends
    [
        ("to_sparse", 3 * 4 + 2 * 3 * 8),
        ("to_sparse_csr", 3 * 4 + (3 + 4) * 8),
        ("to_sparse_csc", 3 * 4 + (3 + 4) * 8),
        ("half", 9 * 2),
    ],
)
def test_the_bytes_of_a_copy_are_those_of_all_that_a_tensor_holds(form, size_bytes):
    with rehearse() as rehearsal:
        getattr(torch.eye(3), form)().to("cuda")
    (copied,) = rehearsal.report.copies
    assert copied.size_bytes == size_bytes
