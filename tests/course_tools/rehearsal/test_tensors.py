"""What a program asks of a tensor's device and type, as PyTorch's documentation answers it."""

import copy

import torch

from course_tools.rehearsal import rehearse

HALF, DOUBLE = torch.float16, torch.float64
# a tensor of the CPU, one of cuda:0, and one of float64 on cuda:1
ASKED = [
    (lambda here, there, other: here.cuda(), "cuda:0", None),
    (lambda here, there, other: here.cuda(1), "cuda:1", None),
    (lambda here, there, other: here.to(1), "cuda:1", None),
    (lambda here, there, other: here.to(HALF), "cpu", HALF),
    (lambda here, there, other: here.to("cuda", HALF), "cuda:0", HALF),
    (lambda here, there, other: here.to(None, HALF), "cpu", HALF),
    (lambda here, there, other: here.to(device="cuda:1", dtype=HALF), "cuda:1", HALF),
    (lambda here, there, other: here.to(other), "cuda:1", DOUBLE),
    (lambda here, there, other: here.to(other=other), "cuda:1", DOUBLE),
    (lambda here, there, other: there.to(HALF), "cuda:0", HALF),
    (lambda here, there, other: there.cpu(), "cpu", None),
    (lambda here, there, other: here.type("torch.cuda.HalfTensor"), "cuda:0", HALF),
    (lambda here, there, other: there.type("torch.HalfTensor"), "cpu", HALF),
    (lambda here, there, other: there.type(HALF), "cuda:0", HALF),
    (lambda here, there, other: here.type_as(other), "cuda:1", DOUBLE),
    (lambda here, there, other: other.new_tensor([1.0]), "cuda:1", DOUBLE),
    (lambda here, there, other: other.new_zeros(2, device="cpu"), "cpu", DOUBLE),
    (lambda here, there, other: torch.rand_like(other), "cuda:1", DOUBLE),
    (lambda here, there, other: torch.zeros_like(here, device="cuda"), "cuda:0", None),
    (lambda here, there, other: torch.as_tensor(other), "cuda:1", DOUBLE),
    (lambda here, there, other: torch.as_tensor(there, device="cpu"), "cpu", None),
    (lambda here, there, other: torch.tensor([1.0], device=1), "cuda:1", None),
    (lambda here, there, other: copy.deepcopy(other), "cuda:1", DOUBLE),
]


def test_a_tensor_is_where_it_was_asked_for_and_of_the_type():
    for ask, device, dtype in ASKED:
        with rehearse(gpus=2):
            here = torch.ones(2)
            found = ask(here, here.cuda(), torch.ones(2, dtype=DOUBLE, device="cuda:1"))
            assert (str(found.device), found.dtype) == (device, dtype or torch.float32)
            kinds = (found.is_cuda, found.is_cpu, found.is_mps, found.is_xpu)
            assert kinds == (device != "cpu", device == "cpu", False, False)
    with rehearse():
        assert torch.ones(2, device="cuda").type() == "torch.cuda.FloatTensor"
