"""Programs that a GPU refuses, with its words, and programs that it accepts."""

import copy
import io
import threading

import numpy as np
import pytest
import torch
from torch import nn
from torch._higher_order_ops.scan import scan
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.attention.flex_attention import flex_attention

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


def fail_scalar_of_the_gpu(device):
    torch.ones(3) * torch.tensor(2.0, device=device)


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


def fail_first_gradient_of_one_number(device):
    one = torch.ones(1, device=device, requires_grad=True)
    (one * 2).backward(torch.ones(1))  # only a gradient without dimensions may stay on the CPU


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


def fail_hook_that_returns_too_few(device):
    rows = torch.ones(3, device=device, requires_grad=True) * 2
    rows.grad_fn.register_hook(lambda inputs, _: inputs[:1])
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


def fail_name_of_a_card_that_is_not_there(device):
    torch.cuda.get_device_name(99)


def fail_capability_of_a_card_that_is_not_there(device):
    torch.cuda.get_device_capability(torch.device(device, 99))


def fail_time_between_events_that_keep_none(device):
    start, end = torch.cuda.Event(), torch.cuda.Event()
    start.record()
    end.record()
    torch.cuda.synchronize()
    start.elapsed_time(end)


def fail_time_between_events_that_were_never_recorded(device):
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(True)
    end.wait()  # which records nothing
    start.elapsed_time(end)


def fail_time_between_events_of_any_device(device):
    start, end = torch.Event(device), torch.Event(device, enable_timing=True)
    start.elapsed_time(end)


def fail_flex_attention(device):
    rows, table = torch.ones(1, 2, 16, 8, device=device), torch.ones(16)
    with torch.no_grad():
        flex_attention(rows, rows, rows, lambda score, *at: score + table * at[2])


#: what PyTorch raises
ERRORS = (AssertionError, RuntimeError, TypeError, ValueError)
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
    fail_scalar_of_the_gpu: f"{LEFT}, but found at least two devices, cuda:0 and cpu!",
    fail_one_value_that_is_no_scalar: f"{LEFT}, but found at least two devices, cuda:0 and cpu!",
    fail_second_gpu: "CUDA error: invalid device ordinal",
    fail_cat: f"{LEFT}, but .*tensors.*wrapper_CUDA_cat",
    fail_half_weights: "Attempting to unscale FP16 gradients",
    fail_gradient_of_a_function: "Function LeftBackward returned an invalid gradient at index 0 - "
    "expected device cuda:0 but got cpu",
    # PyTorch counts the tensors alone, as it does for a gradient of a wrong shape
    fail_last_gradient_of_a_function: "Function LeftLastBackward returned .* at index 1 - ",
    fail_first_gradient: "invalid gradient at index 0 - expected device cuda:0 but got cpu",
    fail_first_gradient_of_one_number: "expected device cuda:0 but got cpu",
    fail_hook: "hook '<lambda>' has changed the type of value",
    fail_hook_of_a_node: "hook '<lambda>' has changed the type of value",
    fail_hook_before_a_node: "hook '<lambda>' has changed the type of value",
    fail_hook_that_returns_too_few: "hook '<lambda>' has returned an incorrect number of values",
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
    fail_name_of_a_card_that_is_not_there: "Invalid device id",
    fail_capability_of_a_card_that_is_not_there: "Invalid device id",
    fail_time_between_events_that_keep_none: "Both events must be created with argument 'enable_",
    fail_time_between_events_that_were_never_recorded: "Both events must be recorded before calcul",
    fail_time_between_events_of_any_device: "Both events must be created with argument 'enable_",
    fail_unsafe_loss: "binary_cross_entropy and torch.nn.BCELoss are unsafe to autocast",
}


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
    assert torch.cuda.CharTensor([1]).dtype == torch.int8
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


def pass_scalar_of_the_cpu_as_the_first_gradient(device):
    rows = torch.ones(3, device=device, requires_grad=True)
    rows.sum().backward(torch.tensor(2.0))
    return rows.grad


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


def given_on(device):
    """Return the names that the programs below use; nothing of them is copied to the GPU."""
    there = {"device": device}
    weight = torch.ones(4, requires_grad=True, **there)
    weight.grad = torch.ones_like(weight)
    saved = io.BytesIO()
    torch.save(torch.ones(4), saved)
    saved.seek(0)
    return {
        "io": io,
        "saved": saved,
        "torch": torch,
        "F": F,
        "nn": nn,
        "device": device,
        "numbers": np.ones(3, np.float32),
        "rows": torch.rand(4, **there),
        "table": torch.rand(4, 4, **there) + torch.eye(4, **there),
        "value": torch.rand((), **there),
        "count": torch.full((), 2, **there),
        "indices": torch.randint(4, (3,), **there),
        "indices_of_cpu": torch.tensor([0, 1, 2]),
        "repeats": torch.full((1,), 2, **there),
        "mask": torch.rand(4, **there) > 0.5,
        "mask_of_cpu": torch.tensor([True, False, False, True]),
        "spoken": torch.randn(5, 2, 4, **there).log_softmax(2),
        "letters": torch.ones(2, 2, dtype=torch.long, **there),
        "lengths": torch.tensor([2, 2]),
        "weight": weight,
        "into": torch.zeros(4),
    }


OWN_TEST = "PyTorch's test_sync_warning, in test/test_torch.py"
SOURCE = "PyTorch 2.6, aten/src/ATen/native/"
NEW = "PyTorch 2.6, torch/csrc/utils/tensor_new.cpp: to(device, non_blocking=false)"
ITEM = "PyTorch 2.6, cuda/CUDAScalar.cu: memcpy_and_sync"
CUDA = "CUDA's manual: API synchronization behavior; events; streams"
DEBUG = "torch.cuda.set_sync_debug_mode, as in pull request 62092"
#: programs in which the host waits for the GPU once, and who says so
WAITING = {
    "rows[mask] = value": OWN_TEST,
    "rows[indices_of_cpu] = value": OWN_TEST,
    "rows[mask]": OWN_TEST,
    "rows[indices_of_cpu]": OWN_TEST,
    "rows.nonzero()": OWN_TEST,
    "bool(value)": OWN_TEST,
    "F.one_hot(indices)": OWN_TEST,
    "torch.repeat_interleave(rows, repeats)": OWN_TEST,
    "torch.tensor(3.14, device=device)": "issue 120996",
    "torch.tensor(3.14).to(device)": "issue 120996",
    "torch.tensor([1, 2], device=device)": NEW,
    "torch.tensor(numbers, device=device)": NEW,
    "torch.as_tensor(numbers, device=device)": NEW,
    "torch.asarray(numbers, device=device)": NEW,
    "torch.as_tensor([1.0, 2.0], device=device)": NEW,
    "rows.new_tensor([1, 2])": NEW,
    "rows.new_tensor(3.14)": NEW,
    "rows.new([1.0, 2.0])": NEW,
    "torch.cuda.FloatTensor([1.0, 2.0])": NEW,
    "torch.tensor([value, value])": "store_scalar reads each value, utils/python_scalars.h",
    "rows.new_tensor([value, value])": "store_scalar reads each value",
    "torch.tensor([[value, 1.0]], device=device)": "store_scalar reads each value",
    "rows[[0, 1]]": "indexing_tensor_from_data, in tensor_new.cpp",
    "rows[range(2)]": "indexing_tensor_from_data, in tensor_new.cpp",
    "rows[[True, False, True, False]]": "indexing_tensor_from_data, then nonzero",
    "rows[[True, False, True, False]] = 1.0": "indexing_tensor_from_data, then masked_fill",
    "rows[0] = torch.tensor(1.0)": "pull request 186482",
    "rows[:2] = torch.ones(2)": SOURCE + "Copy.cu",
    "rows[indices] = torch.tensor(1.0)": SOURCE + "TensorAdvancedIndexing.cpp: value.to",
    "rows[indices_of_cpu] = torch.tensor(1.0)": SOURCE + "TensorAdvancedIndexing.cpp: value.to",
    "rows[count]": "issue 105641",
    "rows[:count]": ITEM,
    "torch.where(mask, torch.tensor(1.0), rows)": SOURCE + "TensorCompare.cpp: to(device)",
    "torch.where(mask)": SOURCE + "TensorCompare.cpp: nonzero_numpy",
    "rows.masked_fill(mask, value)": "pull request 190512",
    "rows.index_fill_(0, indices, value)": SOURCE + "TensorAdvancedIndexing.cpp: source.item()",
    "torch.arange(count)": ITEM,
    "torch.linspace(0, value, 4, device=device)": SOURCE + "RangeFactories.cpp: end.item()",
    "range(count)": ITEM,
    "float(value)": ITEM,
    "rows[0].item()": ITEM,
    "f'{value:.3f}'": ITEM,
    "str(value)": "torch/_tensor_str.py, which reads the value",
    "str(nn.Parameter(value))": "torch/_tensor_str.py, which reads the value",
    "rows.tolist()": ITEM,
    "1.0 in rows": ITEM,
    "max(value, rows[0])": DEBUG,
    "torch.isfinite(rows).all().item()": ITEM,
    "torch.allclose(rows, rows)": SOURCE + "TensorCompare.cpp: item",
    "torch.equal(rows, rows + 1)": SOURCE + "cuda/Equal.cpp: item",
    "indices.bincount()": SOURCE + "cuda/SummaryOps.cu: item",
    "torch.histc(rows, 4)": SOURCE + "cuda/SummaryOps.cu: min().cpu()",
    "indices.unique()": SOURCE + "cuda/UniqueCub.cu: item",
    "indices[None].unique(dim=0)": SOURCE + "cuda/Unique.cu",
    "indices.unique_consecutive()": SOURCE + "cuda/Unique.cu",
    "rows.masked_select(mask)": SOURCE + "cuda/IndexKernel.cpp: index by a mask",
    "torch.normal(rows, rows)": SOURCE + "DistributionTemplates.h: std.min().ge(0).item()",
    "F.ctc_loss(spoken, letters, (5, 5), (2, 2))": SOURCE + "cuda/LossCTC.cu: at::tensor",
    "F.ctc_loss(spoken, letters, lengths + 3, lengths)": SOURCE + "cuda/LossCTC.cu: at::tensor",
    # by its own module: torch_xla puts another function in the place of nn.utils.clip_grad_norm_
    "nn.utils.clip_grad.clip_grad_norm_([weight], 1.0, error_if_nonfinite=True)": "torch/nn/utils",
    "torch.split(rows, repeats.repeat(2).tolist())": ITEM,
    "torch.linalg.cholesky(torch.eye(3, device=device))": SOURCE + "BatchLinearAlgebra.cpp",
    "torch.linalg.inv(table)": SOURCE + "BatchLinearAlgebra.cpp: _linalg_check_errors",
    "torch.linalg.eigh(table)": SOURCE + "BatchLinearAlgebra.cpp: _linalg_check_errors",
    "torch.linalg.svd(table)": SOURCE + "BatchLinearAlgebra.cpp: _linalg_check_errors",
    "torch.matrix_exp(table)": SOURCE + "LinearAlgebra.cpp: norm.to(at::kCPU)",
    "table.to_sparse()": SOURCE + "TensorConversions.cpp: nonzero",
    "table.to_sparse_csr()": SOURCE + "TensorConversions.cpp: _mask_to_indices",
    "F.embedding(indices, table, max_norm=1.0)": SOURCE + "cuda/Embedding.cu: unique_copy",
    "rows.cpu()": SOURCE + "cuda/Copy.cu",
    "torch.save(rows, io.BytesIO())": "torch/serialization.py: storage.cpu()",
    "torch.load(saved, map_location=device)": "torch/serialization.py: the storage is moved",
    "torch.ones(2).untyped_storage().cuda()": "torch/_utils.py: copy_",
    "into.copy_(rows, non_blocking=True)": CUDA,
    "torch.cuda.synchronize()": CUDA,
    "torch.cuda.Event().synchronize()": CUDA,
    "torch.cuda.current_stream().synchronize()": CUDA,
}
#: how often the host waits, where that is more than once
MORE_THAN_ONE = {
    "torch.tensor([value, value])": 2,
    "rows.new_tensor([value, value])": 3,
    "torch.tensor([[value, 1.0]], device=device)": 2,
    "rows[[True, False, True, False]]": 2,
    "rows[indices_of_cpu] = torch.tensor(1.0)": 2,
}
#: programs in which the host does not wait, and who says so
GOING_ON = {
    "rows[mask] = 1.0": OWN_TEST,
    "rows[indices] = value": OWN_TEST,
    "rows[indices]": OWN_TEST,
    "F.one_hot(indices, num_classes=4)": OWN_TEST,
    "torch.randperm(20000, device=device)": OWN_TEST,
    "torch.repeat_interleave(rows, 2, output_size=8)": OWN_TEST,
    "torch.repeat_interleave(rows, repeats, output_size=8)": OWN_TEST,
    "torch.any(value)": OWN_TEST,
    "torch.ones((), device=device) * 3.14": "issue 120996",
    "torch.full((), 3.14, device=device)": "issue 120996",
    "rows[:2] = 1.0": "pull request 186482",
    "rows[:2] = torch.tensor(1.0)": "pull request 186482",
    "table[0] = 1.0": SOURCE + "TensorIndexing.h: fill_",
    "rows[mask] = torch.tensor(1.0)": SOURCE + "TensorAdvancedIndexingUtils.h: masked_fill",
    "rows[0] = value": SOURCE + "cuda/Copy.cu: a copy on the GPU",
    "rows[True]": SOURCE + "TensorIndexing.h: fill_",
    "rows[torch.tensor(2)]": SOURCE + "TensorIndexing.h: the CPU reads its own value",
    "rows.fill_(value)": "issue 109115, closed",
    "rows.masked_fill(mask, 1.0)": SOURCE + "cuda/Indexing.cu",
    "rows.masked_fill(mask, torch.tensor(1.0))": SOURCE + "cuda/Indexing.cu",
    "torch.where(mask, 1.0, rows)": SOURCE + "TensorCompare.cpp: scalar_tensor",
    "torch.where(mask, rows, value)": SOURCE + "TensorCompare.cpp",
    "rows + torch.tensor(1.0)": SOURCE + "TensorIterator.cpp: an argument of the kernel",
    "rows.new(2, 3)": SOURCE + "TensorFactories.cpp",
    "rows.new_full((3,), 1.0)": SOURCE + "TensorFactories.cpp",
    "torch.cuda.FloatTensor(2, 3).fill_(1.0)": SOURCE + "TensorFactories.cpp",
    "torch.as_tensor(value, device=device)": SOURCE + "cuda/Copy.cu: a copy on the GPU",
    "torch.stack([value, value])": SOURCE + "cuda/Shape.cu",
    "[each * 2 for each in rows]": "torch/_tensor.py: unbind",
    "torch.multinomial(rows, 2)": SOURCE + "Distributions.cpp: _assert_async",
    "torch.normal(rows, 1.0)": SOURCE + "DistributionTemplates.h",
    "torch.histc(rows, 4, 0, 1)": SOURCE + "cuda/SummaryOps.cu",
    "torch.cdist(table, table)": SOURCE + "cuda/DistanceKernel.cu",
    "rows.sum() + 1": SOURCE + "cuda/ReduceOps.cpp",
    "nn.utils.clip_grad.clip_grad_norm_([weight], 1.0)": "torch/nn/utils/clip_grad.py",
    "torch.linalg.inv_ex(table)": SOURCE + "BatchLinearAlgebra.cpp: only with check_errors",
    "torch.linalg.det(table)": SOURCE + "BatchLinearAlgebra.cpp: no check",
    "rows.to('cpu', non_blocking=True)": SOURCE + "TensorConversions.cpp: pin_out",
    "rows.copy_(into.pin_memory(), non_blocking=True)": SOURCE + "cuda/Copy.cu",
}
VERSION = tuple(int(part) for part in torch.__version__.split(".")[:2])
for code in ("rows[mask_of_cpu]", "rows[mask_of_cpu] = value"):
    (GOING_ON if VERSION >= (2, 9) else WAITING)[code] = "pull request 156384"
for code in ("rows[0] = 1.0", "table[0, 0] = 1.0", "rows[indices] = 1.0"):
    (GOING_ON if VERSION >= (2, 15) else WAITING)[code] = "pull requests 186482, 188330, 189105"
#: waits that torch.cuda.set_sync_debug_mode does not name
UNSEEN = [code for code in WAITING if WAITING[code] == CUDA]
