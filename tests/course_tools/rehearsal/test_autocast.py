"""Autocast for a simulated GPU against the lists that PyTorch's own tests of CUDA use."""

import pytest
import torch
from every_operation import operations
from torch import nn
from torch.nn.modules import rnn

from course_tools.rehearsal import rehearse

#: kernels of cuDNN, which no CPU has, and an entry whose arguments fit no call
NOT_CALLED = ("cudnn_convolution", "cudnn_convolution_transpose", "einsum")


def pytorchs_lists():
    """Return what to call, how, and the type that PyTorch says comes out on a GPU."""
    operations()  # so that PyTorch's tests can be imported
    from torch.testing._internal.autocast_test_lists import AutocastTestLists

    lists = AutocastTestLists(torch.device("cuda"))
    half, full = torch.float16, torch.float32
    for owner, entries, dtype in (
        (torch, lists.torch_fp16, half),
        (torch, lists.torch_fp32, full),
        (torch, lists.torch_need_autocast_promote, full),
        (torch._C._nn, lists.nn_fp16, half),
        (torch._C._nn, lists.nn_fp32, full),
        (torch._C._linalg, lists.linalg_fp16, half),
    ):
        for name, args, *more in entries:
            if name in NOT_CALLED:
                continue
            named = more[0] if more and isinstance(more[0], dict) else {}
            yield f"{name}, {dtype}", getattr(owner, name), args, named, dtype


@pytest.mark.filterwarnings("ignore")
def test_operations_have_the_types_that_pytorchs_tests_of_cuda_expect():
    others, tried = [], 0
    with rehearse():
        for name, operation, args, named, dtype in pytorchs_lists():
            with torch.autocast("cuda", torch.float16):
                found = operation(*args, **named)
            first = found[0] if isinstance(found, tuple) else found
            tried += 1
            if (first.dtype, first.device.type) != (dtype, "cuda"):
                others.append((name, first.dtype, first.device))
    assert others == [] and tried > 80


# PyTorch's own: torch_xla, once it is imported, puts a class of its own in the place of nn.GRU
@pytest.mark.parametrize("layer", [rnn.LSTM, rnn.GRU, rnn.RNN], ids=lambda each: each.__name__)
def test_recurrent_layers_compute_in_16_bits_and_their_weights_learn_in_32(layer):
    with rehearse():
        network, rows = layer(4, 8).cuda(), torch.ones(3, 2, 4, device="cuda")
        plain = network(rows)[0]
        with torch.autocast("cuda", torch.float16):
            found = network(rows)[0]
        found.float().sum().backward()
        assert found.dtype == torch.float16 and torch.allclose(found.float(), plain, atol=0.01)
        assert network.weight_hh_l0.grad.dtype == torch.float32


def test_a_weight_is_cast_anew_in_each_block_and_not_where_autocast_is_off():
    with rehearse():
        layer, rows = nn.Linear(4, 1, bias=False).cuda(), torch.ones(1, 4, device="cuda")
        for value in (1.0, 2.0):
            nn.init.constant_(layer.weight, value)
            with torch.autocast("cuda", torch.float16):
                assert (layer(rows).dtype, layer(rows).item()) == (torch.float16, 4 * value)
                with torch.autocast("cuda", enabled=False):
                    assert layer(rows).dtype == torch.float32
                # PyTorch's autocast leaves float64 as it is (ATen/autocast_mode.h, is_eligible)
                assert (rows.double() @ layer.weight.double().T).dtype == torch.float64


def test_a_cast_to_32_bits_is_let_go_at_once():
    # PyTorch keeps casts to 16 bits alone (ATen/autocast_mode.cpp, cached_cast)
    with rehearse(), torch.autocast("cuda", torch.float16):
        weight = torch.ones(256, dtype=torch.float16, device="cuda", requires_grad=True)
        assert weight.exp().dtype == torch.float32
        assert torch.cuda.memory_allocated() == weight.nbytes


def test_tensors_of_the_cpu_are_left_alone_and_a_weight_is_cast_once():
    layer = nn.Linear(512, 512)
    with rehearse() as rehearsal, torch.autocast("cuda", torch.float16):
        assert layer(torch.ones(1, 512)).dtype == torch.float32
        layer.to("cuda")
        rows = torch.ones(1, 512, device="cuda")
        for _ in range(3):
            rows = layer(rows)
        assert rows.dtype == torch.float16
        small = 2**16  # bias and rows
        assert rehearsal.report.peak_bytes[0] < 512 * 512 * (4 + 2) + small
    assert layer(torch.ones(1, 512)).dtype == torch.float32
