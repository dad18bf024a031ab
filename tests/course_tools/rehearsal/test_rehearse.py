"""A whole step on a simulated GPU: what fails as on a real one, what does not, what is left."""

import contextlib
import copy
import gc
import inspect
import multiprocessing
import os
import subprocess
import sys
import threading

import numpy as np
import pytest
import torch
from torch import nn
from torch._higher_order_ops.scan import scan
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.attention.flex_attention import flex_attention

from course_tools.rehearsal import rehearse
from course_tools.rehearsal.processes import Rehearsed, settings_of
from course_tools.rehearsal.rehearse import make_world, size_bytes

LEFT = "Expected all tensors to be on the same device"


def fail_input(device):
    nn.Linear(4, 2).to(device)(torch.ones(3, 4))


def fail_convolution(device):
    nn.Conv2d(3, 4, 3).to(device)(torch.ones(1, 3, 8, 8))


def fail_class_weights(device):
    scores, labels = torch.ones(3, 5, device=device), torch.zeros(3, dtype=torch.long).to(device)
    F.cross_entropy(scores, labels, weight=torch.ones(5))


def fail_mask_in_forward(device):
    torch.ones(3, device=device) + torch.arange(3)


def fail_mask_of_attention(device):
    scores = torch.ones(3, 3, device=device)
    scores.masked_fill(torch.ones(3, 3).triu(1).bool(), float("-inf"))


def fail_grid(device):
    grid = F.affine_grid(torch.eye(2, 3)[None], [1, 1, 4, 4], align_corners=False)
    F.grid_sample(torch.ones(1, 1, 4, 4, device=device), grid, align_corners=False)


def fail_bound_of_clamp(device):
    torch.ones(3, device=device).clamp(max=torch.tensor(0.5))


def fail_embedding(device):
    nn.Embedding(10, 3).to(device)(torch.tensor([1, 2]))


def fail_table_of_cpu(device):
    torch.ones(10)[torch.tensor([1, 2], device=device)]


def fail_state(device):
    nn.LSTM(3, 4).to(device)(
        torch.ones(5, 2, 3, device=device), (torch.zeros(1, 2, 4), torch.zeros(1, 2, 4))
    )


def fail_lengths(device):
    rows = torch.ones(2, 3, 4, device=device)
    nn.utils.rnn.pack_padded_sequence(rows, torch.tensor([3, 2], device=device), batch_first=True)


def fail_generator(device):
    torch.randn(3, device=device, generator=torch.Generator().manual_seed(1))


def fail_generator_of_a_loader(device):
    generator = torch.Generator(device).manual_seed(1)
    list(torch.utils.data.DataLoader(range(4), shuffle=True, generator=generator))


def fail_generator_of_the_cpu_in_place(device):
    torch.empty(3, device=device).normal_(generator=torch.Generator().manual_seed(1))


def fail_meta(device):
    with torch.device("meta"):
        layer = nn.Linear(2, 2)
    layer.to(device)


def fail_numpy(device):
    np.asarray(torch.ones(2, device=device))


def fail_list_of_losses(device):
    np.mean([torch.ones((), device=device), torch.ones((), device=device)])


def fail_pinning(device):
    torch.ones(3, device=device).pin_memory()


def fail_average(device):
    model = nn.Linear(2, 2)
    slow = copy.deepcopy(model)
    with torch.no_grad():
        slow.weight.add_(model.to(device).weight)


def fail_sum_of_losses(device):
    total = torch.tensor(0.0)
    total += torch.ones((), device=device)


def fail_one_value_that_is_no_scalar(device):
    torch.ones(3, device=device) * torch.ones(1)


def fail_second_gpu(device):
    torch.ones(3, device="cuda:1")


def fail_cat(device):
    torch.cat([torch.ones(2, device=device), torch.ones(2)])


def fail_half_weights(device):
    model = nn.Linear(2, 2).half().to(device)
    scaler = torch.amp.GradScaler("cuda")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler.scale(model(torch.ones(1, 2, device=device).half()).float().sum()).backward()
    scaler.step(optimizer)


def fail_unsafe_loss(device):
    with torch.autocast("cuda"):
        F.binary_cross_entropy(torch.rand(3, device=device), torch.ones(3, device=device))


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, rows, dtype):
        return rows * 2

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 2, None


class Left(Doubled):
    @staticmethod
    def backward(ctx, gradient):
        return torch.ones(3), None


def fail_gradient_of_a_function(device):
    Left.apply(torch.ones(3, device=device, requires_grad=True), None).sum().backward()


class LeftLast(torch.autograd.Function):
    @staticmethod
    def forward(ctx, rows, dtype, more):
        return rows * more

    @staticmethod
    def backward(ctx, gradient):
        return gradient, None, torch.ones(3)


def fail_last_gradient_of_a_function(device):
    rows, more = (torch.ones(3, device=device, requires_grad=True) for _ in range(2))
    LeftLast.apply(rows, None, more).sum().backward()


def fail_first_gradient(device):
    rows = torch.ones(3, device=device, requires_grad=True)
    torch.autograd.grad(rows * 2, rows, grad_outputs=torch.ones(3))


def fail_hook(device):
    rows = torch.ones(3, device=device, requires_grad=True)
    rows.register_hook(lambda gradient: gradient.cpu())
    rows.sum().backward()


def fail_hook_of_a_node(device):
    rows = torch.ones(3, device=device, requires_grad=True) * 2
    rows.grad_fn.register_hook(lambda inputs, _: (inputs[0].cpu(), inputs[1]))
    rows.sum().backward()


def fail_hook_before_a_node(device):
    rows = torch.ones(3, device=device, requires_grad=True) * 2
    rows.grad_fn.register_prehook(lambda outputs: (outputs[0].cpu(),))
    rows.sum().backward()


def fail_hook_of_a_layer(device):
    layer = nn.Linear(3, 3).to(device)
    layer.register_full_backward_hook(lambda layer, inputs, outputs: (torch.ones(2, 3),))
    layer(torch.ones(2, 3, device=device, requires_grad=True)).sum().backward()


def fail_assigned_gradient(device):
    torch.ones(3, device=device).grad = torch.ones(3)


def fail_memory_of_another(device):
    torch.ones(3, device=device).set_(torch.ones(3))


def fail_result_into_a_scalar_of_the_cpu(device):
    torch.sum(torch.ones(3, device=device), dim=0, out=torch.tensor(0.0))


def fail_product_of_whole_numbers(device):
    rows = torch.ones(2, 2, dtype=torch.long, device=device)
    rows @ rows


def fail_histogram(device):
    torch.histogram(torch.ones(5, device=device), 3)


def fail_condition(device):
    rows, left = torch.ones(3, device=device), torch.ones(3)
    torch.cond(rows.sum() > 0, lambda rows: rows + left, lambda rows: rows, (rows,))


def fail_scan(device):
    rows, left = torch.ones(4, 3, device=device), torch.ones(3)
    scan(lambda total, row: (total + row + left, total * row), rows[0], rows)


def fail_current_gpu_without_a_number(device):
    torch.cuda.set_device(torch.device(device))


def fail_flex_attention(device):
    rows, table = torch.ones(1, 2, 16, 8, device=device), torch.ones(16)
    with torch.no_grad():
        flex_attention(rows, rows, rows, lambda score, *at: score + table * at[2])


# The messages are PyTorch's, as people have posted them and as its sources write them.
REFUSED = {
    fail_input: f"{LEFT}, but .*mat1",
    fail_convolution: r"Input type \(torch.FloatTensor\) and weight type \(torch.cuda.FloatTensor\)"
    " should be the same or input should be a MKLDNN tensor and weight is a dense tensor",
    fail_class_weights: f"{LEFT}, but .*weight.*wrapper_CUDA_nll_loss_forward",
    fail_mask_in_forward: f"{LEFT}, but found at least two devices, cuda:0 and cpu!",
    fail_mask_of_attention: "expected self and mask to be on the same device, but got mask on cpu "
    "and self on cuda:0",
    fail_grid: r"grid_sampler\(\): expected input and grid to be on same device, but input is on "
    "cuda:0 and grid is on cpu",
    fail_bound_of_clamp: f"{LEFT}, but .*max.*wrapper_CUDA_clamp_Tensor",
    fail_embedding: f"{LEFT}, but .*index.*wrapper_CUDA__index_select",
    fail_table_of_cpu: "indices should be either on cpu or on the same device as the indexed tensor"
    r" \(cpu\)",
    fail_state: "Input and hidden tensors are not at the same device, found input tensor at cuda:0"
    " and hidden tensor at cpu",
    fail_lengths: "'lengths' argument should be a 1D CPU int64 tensor, but got 1D cuda:0 Long",
    fail_generator: "Expected a 'cuda' device type for generator but found 'cpu'",
    fail_generator_of_a_loader: "Expected a 'cpu' device type for generator but found 'cuda'",
    fail_generator_of_the_cpu_in_place: "Expected a 'cuda' device type .* but found 'cpu'",
    fail_meta: "Cannot copy out of meta tensor; no data! Please use torch.nn.Module.to_empty",
    fail_numpy: "can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu",
    fail_list_of_losses: "can't convert cuda:0 device type tensor to numpy",
    fail_pinning: "cannot pin 'torch.cuda.FloatTensor' only dense CPU tensors can be pinned",
    fail_average: f"{LEFT}, but found at least two devices, cuda:0 and cpu!",
    fail_sum_of_losses: f"{LEFT}, but found at least two devices, cuda:0 and cpu!",
    fail_one_value_that_is_no_scalar: f"{LEFT}, but found at least two devices, cuda:0 and cpu!",
    fail_second_gpu: "CUDA error: invalid device ordinal",
    fail_cat: f"{LEFT}, but .*tensors.*wrapper_CUDA_cat",
    fail_half_weights: "Attempting to unscale FP16 gradients",
    fail_gradient_of_a_function: "Function LeftBackward returned an invalid gradient at index 0 - "
    "expected device cuda:0 but got cpu",
    # PyTorch counts the tensors alone, as it does for a gradient of a wrong shape
    fail_last_gradient_of_a_function: "Function LeftLastBackward returned .* at index 1 - ",
    fail_first_gradient: "invalid gradient at index 0 - expected device cuda:0 but got cpu",
    fail_hook: "hook '<lambda>' has changed the type of value",
    fail_hook_of_a_node: "hook '<lambda>' has changed the type of value",
    fail_hook_before_a_node: "hook '<lambda>' has changed the type of value",
    fail_hook_of_a_layer: "hook 'hook' has changed the type of value",
    fail_assigned_gradient: "attempting to assign a gradient with device type 'cpu' to a tensor "
    "with device type 'cuda'",
    fail_memory_of_another: 'Attempted to set the storage of a tensor on device "cuda:0" to a '
    'storage on different device "cpu"',
    fail_result_into_a_scalar_of_the_cpu: f"{LEFT}|Expected out tensor to have device cuda:0",
    fail_product_of_whole_numbers: "\"addmm_cuda\" not implemented for 'Long'",
    fail_histogram: "Could not run 'aten::histogram.bin_ct' with arguments from the 'CUDA' backend",
    # On a real card these three are traced first, with fake tensors and their words.
    fail_condition: "two (different )?devices|captured completely",
    fail_scan: "two (different )?devices|captured completely",
    fail_flex_attention: "two (different )?devices",
    fail_current_gpu_without_a_number: "Expected a torch.device with a specified index or an int",
    fail_unsafe_loss: "binary_cross_entropy and torch.nn.BCELoss are unsafe to autocast",
}


@pytest.mark.filterwarnings("ignore:flex_attention called without")
@pytest.mark.parametrize("program", REFUSED, ids=lambda each: each.__name__)
def test_what_a_gpu_refuses_fails_with_pytorchs_words(program):
    with rehearse(), pytest.raises((RuntimeError, TypeError, ValueError), match=REFUSED[program]):
        program("cuda")


def pass_scalar(device):
    return torch.ones(3, device=device) * torch.tensor(2.0)


def pass_value_into_a_table_of_the_cpu(device):
    table, value = torch.zeros(4), torch.ones((), device=device)
    table[torch.tensor([2])] = value
    table[torch.tensor([True, False, False, False])] = value
    assert table.tolist() == [1, 0, 1, 0] and table.device.type == "cpu"
    return value


def pass_cpu_indices(device):
    return torch.ones(3, device=device)[torch.tensor([0, 1])]


def pass_mask(device):
    rows = torch.ones(3, device=device)
    return rows[rows > 0]


def pass_picture(device):
    return torch.from_numpy(torch.ones(3, device=device).detach().cpu().numpy()).to(device)


def pass_lengths(device):
    rows = torch.ones(2, 3, 4, device=device)
    packed = nn.utils.rnn.pack_padded_sequence(rows, torch.tensor([3, 2]), batch_first=True)
    # no GRU: where torch_xla was imported, it has replaced nn.GRU by one that takes no lengths
    return nn.LSTM(4, 2, batch_first=True).to(device)(packed)[1][0]


def pass_like(device):
    rows = torch.ones(3, 4, device=device)
    return rows.new_zeros(3, 4) + torch.randn_like(rows) + rows.new_tensor([1.0])


def pass_causal_attention(device):
    rows = torch.ones(1, 2, 3, 8, device=device, requires_grad=True)
    return F.scaled_dot_product_attention(rows, rows, rows, is_causal=True)


def pass_network_that_ran_before(device):
    network = nn.LSTM(3, 4)
    network(torch.ones(5, 2, 3))
    return network.to(device)(torch.ones(5, 2, 3, device=device))[0]


def pass_generator(device):
    return torch.randn(3, device=device, generator=torch.Generator(device).manual_seed(1))


def pass_generator_in_place(device):
    generator = torch.Generator(device)
    torch.randperm(3, device=device, generator=generator)
    return torch.ones(3, device=device).bernoulli_(generator=generator)


def pass_hessian(device):
    return torch.func.hessian(lambda row: (row**3).sum())(torch.ones(2, device=device))


def pass_numbers(device):
    layer = nn.Linear(2, 2).to(0)
    return torch.empty_like(layer.weight, device=torch.device(0)) + torch.ones(2).to(0)


def pass_default_device(device):
    with torch.device(device):
        return nn.Linear(2, 2)(torch.ones(1, 2))


def pass_legacy(device):
    made = torch.cuda.FloatTensor([1.0, 2.0])
    assert isinstance(made, torch.cuda.FloatTensor) and isinstance(made, torch.Tensor)
    assert not isinstance(torch.ones(2), torch.cuda.FloatTensor)
    assert not isinstance(made, (torch.cuda.HalfTensor, torch.FloatTensor))
    assert isinstance(made.cpu(), torch.FloatTensor) and isinstance(made.long(), torch.Tensor)
    return made + torch.ones(2).type(torch.cuda.FloatTensor)


def pass_vmap(device):
    return torch.vmap(lambda row: row * 2)(torch.ones(3, 2, device=device))


def pass_checkpointing(device):
    layer = nn.Sequential(nn.Linear(3, 3), nn.Dropout()).to(device)
    rows = torch.ones(3, 3, device=device, requires_grad=True)
    torch.utils.checkpoint.checkpoint(layer, rows, use_reentrant=False).sum().backward()
    return layer[0].weight.grad


def pass_ctc(device):
    rows = torch.randn(5, 2, 4, device=device).log_softmax(2)
    targets, lengths = torch.ones(2, 2, dtype=torch.long, device=device), torch.tensor([5, 5])
    return F.ctc_loss(rows, targets, lengths, torch.tensor([2, 2]))


def pass_lazy(device):
    return nn.LazyLinear(3).to(device)(torch.ones(2, 2, device=device))


def pass_meta(device):
    with torch.device("meta"):
        layer = nn.Linear(2, 2)
    return layer.to_empty(device=device).weight


def pass_jagged(device):
    rows = [torch.ones(2, 4), torch.ones(3, 4)]
    return torch.nested.nested_tensor(rows, layout=torch.jagged, device=device) * 2


def pass_threads(device):
    found = []
    thread = threading.Thread(target=lambda: found.append(torch.ones(2, device=device) * 2))
    thread.start()
    thread.join()
    return found[0]


def pass_data_parallel(device):
    network = nn.DataParallel(nn.Linear(2, 2).to(device), device_ids=[0])
    return network(torch.ones(4, 2, device=device))


def pass_scaler_and_clipping(device):
    network = nn.Linear(2, 2).to(device)
    optimizer = torch.optim.AdamW(network.parameters())
    scaler = torch.amp.GradScaler("cuda")
    with torch.autocast("cuda", torch.float16):
        loss = network(torch.ones(4, 2, device=device)).square().mean()
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(network.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
    return network.weight


def pass_averages(device):
    network = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2)).to(device)
    averages = torch.optim.swa_utils.get_ema_multi_avg_fn(0.9)
    averaged = torch.optim.swa_utils.AveragedModel(network, multi_avg_fn=averages)
    kept = torch.optim.swa_utils.AveragedModel(network, device="cpu")
    for _ in range(2):
        averaged.update_parameters(network)
        kept.update_parameters(network)
    assert next(kept.parameters()).device.type == "cpu"
    return averaged(torch.ones(4, 2, device=device))


def pass_function_of_ones_own(device):
    rows = torch.ones(3, device=device, requires_grad=True)
    Doubled.apply(rows, torch.float32).sum().backward()
    return rows.grad


class Pair(torch.autograd.Function):
    @staticmethod
    def forward(ctx, rows):
        ctx.set_materialize_grads(False)
        return rows * 2, rows * 3

    @staticmethod
    def backward(ctx, gradient, unused):
        assert unused is None
        return gradient * 2


def pass_function_with_a_result_that_nobody_used(device):
    rows = torch.ones(3, device=device, requires_grad=True)
    Pair.apply(rows)[0].sum().backward()
    return rows.grad


MADE_BEFORE = torch.ones(3)


def pass_copy_of_what_was_made_before(device):
    return torch.zeros(3, device=device).copy_(MADE_BEFORE)


def pass_hooks(device):
    rows = torch.ones(2, 2, device=device, requires_grad=True)
    layer = nn.Linear(2, 2).to(device)
    layer.register_full_backward_hook(lambda layer, inputs, outputs: inputs)
    found = layer(rows)
    found.register_hook(lambda gradient: gradient * 2)
    found.sum().backward()
    rows.grad = rows.grad * 2
    return rows.grad


def pass_scalar_that_learns_on_the_cpu(device):
    scale = nn.Parameter(torch.tensor(2.0))
    optimizer = torch.optim.SGD([scale], lr=0.1)
    (scale * torch.ones(3, device=device)).sum().backward()
    optimizer.step()
    assert scale.grad.device.type == "cpu"
    return torch.ones(2, device=device) * scale.detach()


def pass_condition(device):
    rows = torch.ones(3, device=device)
    return torch.cond(rows.sum() > 0, lambda rows: rows + 1, lambda rows: rows, (rows,))


def pass_flex_attention(device):
    rows, table = torch.ones(1, 2, 16, 8, device=device), torch.ones(16, device=device)
    if torch.__version__ < "2.7":
        pytest.skip("a score function's own table is a false alarm in PyTorch 2.6")
    with torch.no_grad():
        return flex_attention(rows, rows, rows, lambda score, *at: score + table[at[2]])


def pass_kernels_of_attention(device):
    rows = torch.ones(1, 2, 16, 8, device=device, dtype=torch.float16)
    with sdpa_kernel(SDPBackend.EFFICIENT_ATTENTION):
        return F.scaled_dot_product_attention(rows, rows, rows)


def pass_sparse(device):
    matrix = torch.eye(3).to_sparse().to(device)
    return matrix @ torch.ones(3, 2, device=device)


# tests/gpu runs the same programs on a real card
PASSED = [each for name, each in list(globals().items()) if name.startswith("pass_")]


@pytest.mark.filterwarnings("ignore:flex_attention called without")
@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated")  # by PyTorch's own hessian
@pytest.mark.parametrize("program", PASSED, ids=lambda each: each.__name__)
def test_what_a_gpu_accepts_raises_no_false_alarm(program):
    with rehearse():
        assert program("cuda").device == torch.device("cuda:0")


def test_an_error_names_the_tensor_left_behind_and_the_line_that_made_it():
    with rehearse():
        mask = torch.ones(3)
        with pytest.raises(RuntimeError) as caught:
            torch.ones(3, device="cuda") + mask
    (note,) = caught.value.__notes__
    assert "`mask`" in note and "mask = torch.ones(3)" in note and ".to('cuda:0')" in note


def test_a_view_or_a_change_inside_the_rehearsal_is_not_what_made_an_older_tensor():
    older, more = torch.ones(4), torch.ones(4)
    with rehearse():
        for change in (lambda: older[:4], lambda: older.add_(more)):
            rows = change()
            with pytest.raises(RuntimeError) as caught:
                torch.ones(4, device="cuda") + rows
            assert "made before the rehearsal began" in caught.value.__notes__[0]


def parameters_of(function):
    function = getattr(function, "__func__", function)
    try:
        found = inspect.signature(function).parameters
    except (TypeError, ValueError):  # written in C++
        return {}
    return {name: each.default for name, each in found.items() if each.default is not each.empty}


@pytest.mark.parametrize("kind", ["cuda", "mps", "xpu"])
def test_what_is_left_out_in_a_call_is_what_pytorch_takes_for_it(kind):
    compared, others = 0, []
    with rehearse(kind) as rehearsal:
        for owner, name, before in rehearsal._world.before:
            of_torch, ours = parameters_of(before), parameters_of(vars(owner)[name])
            for each in of_torch.keys() & ours.keys() - {"buffer_size"}:  # nothing is gathered here
                compared += 1
                # a device of this kind without a number is the current one, as is None
                if ours[each] != (None if of_torch[each] == kind else of_torch[each]):
                    others.append((owner, name, each, ours[each]))
    assert others == [] and compared > 50


def every_name():
    """Return what each name is in each module of PyTorch, in each class there, and in threading."""
    owners = {threading.Thread, multiprocessing.process.BaseProcess, subprocess.Popen}
    modules = [each for name, each in list(sys.modules.items()) if name.split(".")[0] == "torch"]
    for module in filter(None, modules):
        owners.add(module)
        owners |= {each for each in vars(module).values() if issubclass(type(each), type)}
    found = {(owner, name): value for owner in owners for name, value in vars(owner).items()}
    counted = ("next_id", "_abc_impl")  # of hooks, and a cache
    return {key: value for key, value in found.items() if key[1] not in counted}


def train(kind):
    network = nn.Sequential(nn.Linear(2, 2), nn.Dropout()).to(kind)
    optimizer = torch.optim.Adam(network.parameters())
    with torch.autocast(kind, torch.float16):
        network(torch.ones(3, 2, device=kind)).sum().backward()
    optimizer.step()


@pytest.mark.parametrize("kind", ["cuda", "mps", "xpu"])
@pytest.mark.parametrize("ending", [None, RuntimeError, KeyboardInterrupt, SystemExit])
def test_every_name_is_torchs_again_however_a_block_ends(kind, ending):
    with rehearse(kind):
        train(kind)  # what is loaded when it is first used is loaded
    before = every_name()
    ends = pytest.raises(ending) if ending else contextlib.nullcontext()
    with ends, rehearse(kind), rehearse(kind):
        train(kind)
        torch.set_default_device(kind)
        assert torch.ones(1).device.type == kind
        if ending:
            raise ending
    after = every_name()
    assert {key for key in before if before[key] is not after.get(key)} == set()
    assert after.keys() == before.keys()
    assert torch.ones(1).device.type == "cpu" and not torch.accelerator.is_available()
    # A default that nobody chose is none again: a tensor of another device is not moved to it.
    assert torch.overrides._get_current_function_mode() is None


def test_modules_that_may_not_load_are_no_obstacle(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch_kept_out", None)  # as Python's import allows
    monkeypatch.delitem(sys.modules, "torch_later", raising=False)
    with rehearse():
        monkeypatch.setitem(sys.modules, "torch_later", None)
        assert torch.ones(1).cuda().is_cuda
    assert not torch.ones(1).is_cuda and not torch.cuda.is_available()


@pytest.mark.skipif(torch.__version__ < "2.7", reason="scan of PyTorch 2.6 has no backward pass")
def test_scan_is_a_loop_on_the_gpu_also_backward():
    rows = torch.arange(12.0).reshape(4, 3).requires_grad_()
    total, products = torch.zeros(3), []
    for row in rows:
        products.append(total * row)
        total = total + row
    torch.stack(products).sum().backward()
    with rehearse():
        moved = rows.detach().cuda().requires_grad_()
        last, found = scan(
            lambda total, row: (total + row, total * row), torch.zeros(3, device="cuda"), moved
        )
        found.sum().backward()
        places = [each.device.type for each in (last, found, moved.grad)]
    assert places == ["cuda"] * 3 and torch.equal(moved.grad, rows.grad)
    assert torch.equal(last, total) and torch.equal(found, torch.stack(products))


def test_numpys_memory_is_not_the_gpus():
    numbers = np.ones(2, np.float32)
    with rehearse():
        copied = [torch.as_tensor(numbers, device="cuda"), torch.asarray(numbers, device="cuda")]
        numbers[:] = 5
        assert [each.tolist() for each in copied] == [[1, 1], [1, 1]]


def test_a_thread_that_began_before_is_reported():
    start, asked = threading.Event(), []

    def work():
        start.wait()
        asked.append(torch.ones(2).to("cuda"))

    thread = threading.Thread(target=work)
    thread.start()
    with rehearse() as rehearsal:
        start.set()
        thread.join()
    assert len(asked) == 1
    assert any("A thread that was started before" in each for each in rehearsal.report.remarks)


@pytest.mark.parametrize("kind", ["cuda", "mps", "xpu"])
def test_what_torch_has_under_two_names_stays_one_thing(kind):
    package = getattr(torch, kind)
    parts = [getattr(package, name, None) for name in ("memory", "random", "streams")]
    shared = [
        (part, name)
        for part in parts
        for name, value in vars(part or object).items()
        if vars(package).get(name, part) is value
    ]
    with rehearse(kind):
        assert [each for each in shared if getattr(*each) is not getattr(package, each[1])] == []
        if kind == "cuda":
            torch.cuda.random.set_rng_state(torch.cuda.random.get_rng_state())


CELLS = """
import signal
import torch
from course_tools.rehearsal import rehearse
plain = torch.Tensor.to, torch.Tensor.register_hook, torch.autograd.Function.apply
# --
with rehearse() as rehearsal:
    rows = torch.ones(2).cuda() * 2
    signal.raise_signal(signal.SIGINT)
# --
total = (rows + torch.ones(2)).sum()
[rehearsal.report.on_gpu > 0, torch.cuda.is_available(), rows.device.type, total]
# --
with rehearse() as again:
    rows = torch.ones(2).cuda() + torch.ones(2)
# --
plain == (torch.Tensor.to, torch.Tensor.register_hook, torch.autograd.Function.apply)
"""


@pytest.mark.process
def test_other_cells_of_a_kernel_are_untouched_also_after_an_interrupt_or_an_error():
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    cells = [nbformat.v4.new_code_cell(each.strip()) for each in CELLS.split("# --")]
    notebook = nbformat.v4.new_notebook(cells=cells)
    client = nbclient.NotebookClient(notebook, timeout=120, allow_errors=True)
    client.execute()
    _, interrupted, after, error, last = [each.outputs[-1:] for each in cells]
    assert interrupted[0].ename == "KeyboardInterrupt"
    assert after[0].data["text/plain"] == "[True, False, 'cpu', tensor(6.)]"
    assert error[0].ename == "RuntimeError" and "same device" in error[0].evalue
    assert last[0].data["text/plain"] == "True"


def test_a_real_gpu_is_hidden_only_on_request(monkeypatch):
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: True)
    here = torch.device("cuda:0")
    monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda *_: here)
    with pytest.raises(RuntimeError, match=r"here \(cuda:0\).*hide_real"), rehearse():
        pass
    with rehearse(gpus=2, hide_real=True):
        assert torch.accelerator.device_count() == torch.cuda.device_count() == 2
    assert torch.accelerator.is_available() and torch.accelerator.current_accelerator() is here


def test_a_rehearsal_inside_another_is_the_same_and_may_be_repeated():
    for _ in range(2):
        with rehearse() as outer:
            with rehearse() as inner:
                rows = torch.ones(2, device="cuda")
            assert (rows + rows).device.type == "cuda"
            assert inner.report.operations <= outer.report.operations
            with pytest.raises(ValueError, match="is running"), rehearse("mps"):
                pass
    assert rows.device.type == "cpu"


@pytest.mark.parametrize(
    "asked, told",
    [
        ({"kind": "tpu"}, "'tpu' cannot be rehearsed"),
        ({"gpus": 0}, "gpus=0"),
        ({"gpus": True}, "gpus=True"),
        ({"kind": "mps", "gpus": 2}, "1 to 1"),
        ({"memory": "16 apples"}, "not a size"),
        ({"memory": -1}, "not a size"),
        ({"capability": 7.5}, r"capability=7\.5"),
    ],
)
def test_what_cannot_be_rehearsed_is_refused_in_a_sentence(asked, told):
    with pytest.raises(ValueError, match=told), rehearse(**asked):
        pass


def test_sizes_are_read_as_people_write_them():
    for power, letter in enumerate("KMGT", 1):  # IEC 80000-13
        assert size_bytes(f"16 {letter}B") == 16 * 1000**power
        assert size_bytes(f"16{letter.lower()}iB") == 16 * 1024**power
    assert size_bytes(512) == size_bytes("512 B") == 512 and size_bytes("1.5 MB") == 1_500_000


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
    assert rehearsal.report.peak_bytes == (2**20,)


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


@pytest.mark.parametrize(
    ("inner", "fits"),
    [
        ({}, True),
        ({"memory": "1 GB", "capability": (7, 5)}, True),
        ({"memory": "1 KB"}, False),
        ({"capability": (9, 0)}, False),
        ({"gpus": 2}, False),
    ],
    ids=str,
)
def test_a_rehearsal_inside_another_is_that_one_or_refused(inner, fits):
    ends = contextlib.nullcontext() if fits else pytest.raises(ValueError, match="is running")
    with rehearse(memory="1 GB", capability=(7, 5)), ends, rehearse(**inner):
        assert torch.cuda.get_device_properties(0).total_memory == 10**9


def test_a_device_is_refused_or_ignored_as_pytorch_does():
    with pytest.raises(ValueError) as of_torch:
        torch.cuda._utils._get_device_index("cpu", optional=True)
    with rehearse(gpus=2):
        with pytest.raises(ValueError) as refused:
            torch.cuda.memory_allocated("cpu")
        torch.cuda.set_device(1)
        torch.cuda.set_device(-1)
        assert torch.cuda.current_device() == 1
    assert str(refused.value) == str(of_torch.value)


def test_the_peak_belongs_to_what_is_alive_then():
    with rehearse() as rehearsal:
        for size in (2**20, 2**21):
            kept = torch.ones(size // 4, device="cuda")
            del kept
        last = torch.ones(2**20, device="cuda")
    assert [each.size_bytes for each in rehearsal.report.peak_by if each.size_bytes] == [2**22]
    assert last.numel() == 2**20 and rehearsal.report.peak_bytes == (2**22,)


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


class Cards(torch.utils.data.Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        return torch.ones(2).cuda()


@pytest.mark.process
def test_a_worker_that_touches_the_gpu_fails_as_after_a_fork():
    with rehearse():
        torch.ones(1, device="cuda")
        loader = torch.utils.data.DataLoader(Cards(), num_workers=1, multiprocessing_context="fork")
        with pytest.raises(RuntimeError, match="Cannot re-initialize CUDA in forked subprocess"):
            next(iter(loader))


def test_a_tensor_that_is_sent_to_another_process_stays_on_its_gpu():
    queue = torch.multiprocessing.get_context("spawn").SimpleQueue()
    with rehearse(gpus=2) as rehearsal:
        queue.put([torch.ones(2, device="cuda:1").share_memory_(), torch.ones(2)])
        one, other = queue.get()
        assert rehearsal.report.copies == ()
        assert (one * 2).device == torch.device("cuda:1") and other.device.type == "cpu"


@pytest.mark.process
def test_a_process_that_starts_anew_believes_in_the_gpu_too():
    spawn = multiprocessing.get_context("spawn")
    with rehearse("cuda", hide_real=True):
        process = spawn.Process(target=torch.nn.Linear, args=(1, 1), kwargs={"device": "cuda"})
        process.start()
        process.join()
    assert process.exitcode == 0  # without a GPU it is 1


@pytest.mark.parametrize(
    ("tells", "device", "told"),
    [(True, "cuda", True), (True, "cpu", False), (False, "cuda", False)],
)
def test_another_process_reports_what_it_did_on_a_gpu_if_the_first_one_does(
    tells, device, told, capsys
):
    settings = settings_of(make_world("cuda", 1, None, (8, 0))) | {"tells": tells}
    Rehearsed(lambda: torch.ones(2, device=device) + 1, rehearse, settings)()
    assert ("rehearsal, MainProcess: " in capsys.readouterr().err) == told


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


def test_a_checkpoint_remembers_where_its_tensors_were(tmp_path):
    with rehearse() as rehearsal:
        torch.save(torch.ones(2, device="cuda"), tmp_path / "one.pt")
        assert torch.load(tmp_path / "one.pt").device.type == "cuda"
        assert torch.load(tmp_path / "one.pt", map_location="cpu").device.type == "cpu"
    with pytest.raises(RuntimeError, match="deserialize object on a CUDA device"):
        torch.load(tmp_path / "one.pt")
    assert any("map_location" in each for each in rehearsal.report.remarks)
    with rehearse(gpus=2):
        torch.save(torch.ones(2, device="cuda:1"), tmp_path / "second.pt")
    with rehearse(), pytest.raises(RuntimeError, match="deserialize object on CUDA device 1 but"):
        torch.load(tmp_path / "second.pt")


def test_float64_is_refused_on_a_mac():
    with rehearse("mps"):
        with pytest.raises(TypeError, match="MPS framework doesn't support float64"):
            torch.ones(2, dtype=torch.float64).to("mps")
        with pytest.raises(TypeError, match="MPS framework doesn't support float64"):
            torch.zeros(2, dtype=torch.float64, device="mps")


def test_who_moved_data_and_met_an_error_at_once_is_not_asked_whether_anything_was_moved():
    with rehearse() as rehearsal, pytest.raises(RuntimeError, match="same device"):
        torch.ones(3).cuda() + torch.ones(3)
    assert rehearsal.report.on_gpu == 0 and "Nothing ran on the GPU" not in repr(rehearsal.report)
    assert "Copies: 1" in repr(rehearsal.report)


def test_the_report_counts_copies_waits_and_steps():
    with rehearse() as rehearsal:
        model = nn.Linear(4, 1).cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(3):
            rows = torch.ones(8, 4)
            model(rows.cuda()).mean().backward()
            optimizer.step()
        model(torch.ones(1, 4).pin_memory().cuda()).item()
        torch.ones(1, 4).pin_memory().to("cuda", non_blocking=True)
    report = rehearsal.report
    assert report.steps == 3
    moved = {line.where.partition(": ")[2]: line for line in report.copies}
    assert moved["model(rows.cuda()).mean().backward()"].size_bytes == 3 * 8 * 4 * 4
    copying = [line for line in report.waits if line.what == "copy to the GPU"]
    others = [line for line in report.waits if line not in copying]
    assert sum(line.count for line in copying) == 2 + 3 + 1  # parameters, batches, the last batch
    assert [line.count for line in others] == [1]
    assert any("pinned" in line.what for line in report.copies)
    assert "Not looked at" in repr(report) and report.to_dict()["gpus"] == 1
    count = sum(line.count for line in report.copies)
    assert f"Copies: {count}, {count / 3:.1f} per step" in repr(report)
    with rehearse() as rehearsal:
        torch.ones(1, device="cuda") + 1
    assert "\nCopies: none\nWaits of the host for the GPU: none\n" in repr(rehearsal.report)


def test_the_time_between_two_events_is_in_milliseconds():
    with rehearse():
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.time_s, end.time_s = 2.0, 2.25
        assert start.elapsed_time(end) == 250  # torch.cuda.Event: "time elapsed in milliseconds"


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
    assert moved[0] == [(moved[0][0][0], 32)]
    assert seen(lambda into, values: into.copy_(values, non_blocking)) == moved
    together = {"non_blocking": non_blocking}
    assert seen(lambda into, values: torch._foreach_copy_([into], [values], **together)) == moved


def test_the_copy_of_a_sparse_tensor_is_its_values_and_indices():
    with rehearse() as rehearsal:
        torch.eye(3).to_sparse().to("cuda")
    (copied,) = rehearsal.report.copies
    assert copied.size_bytes == 3 * 4 + 2 * 3 * 8


def test_a_line_of_a_package_is_named_without_the_folders_of_this_machine(tmp_path, monkeypatch):
    package = tmp_path / "packages" / "package_of_theirs"
    package.mkdir(parents=True)
    code = 'import torch\n\n\ndef load():\n    return torch.ones(3, device="cuda")\n'
    (package / "data.py").write_text(code)
    monkeypatch.syspath_prepend(str(package.parent))
    import package_of_theirs.data

    with rehearse() as rehearsal:
        package_of_theirs.data.load()
    monkeypatch.chdir(tmp_path)
    below = os.path.join("packages", "package_of_theirs", "data.py")
    assert rehearsal.report.peak_by[0].where.startswith(f"{below}:5: return torch.ones(3")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert rehearsal.report.peak_by[0].where.startswith(
        os.path.join("package_of_theirs", "data.py:5: ")
    )
