"""Every operation of PyTorch's test data base against FakeTensorMode and the CPU's values."""

import mmap
import re
from pathlib import Path

import pytest
import torch
from every_operation import (
    Tried,
    call,
    compare,
    fake_verdict,
    moved,
    operations,
    tensors_in,
    try_operation,
    verdict,
)

from course_tools.rehearsal import rehearse
from course_tools.rehearsal.rules import NO_KERNEL, TYPES, device_check_of, rule_of, type_name

#: differences from FakeTensorMode, and from the CPU's values, with the reason
REASONS = {
    "nn.functional.conv": "a convolution compares the types of input and weight, device included",
    "linspace.tensor_overload": "made on the device that is asked for; FakeTensorMode says the CPU",
    "logspace.tensor_overload": "as linspace",
    "tensor_split": "the data base holds the function itself; programs reach it by its name",
    "index_fill": "CUDA's kernel takes no scalar of the CPU; FakeTensorMode does not know that",
    "empty": "uninitialized memory has no values",
    "new_empty": "uninitialized memory has no values",
}
#: they compare nothing, or are named after another overload
OTHER_NAMES = ("_sparse_semi_structured", "_batch_norm", "_fused_moving", "_native_batch_norm")


def overloads(name):
    packet = getattr(torch.ops.aten, name, None)
    names = packet.overloads() if hasattr(packet, "overloads") else []
    return [(each, getattr(packet, each)._schema) for each in names]


def reason_of(difference):
    """Return why a verdict may differ, or ""."""
    name, what, _ = difference
    for start, reason in REASONS.items():
        if name.startswith(start):
            return reason
    operation = name.partition(".")[0]
    compares = any(
        device_check_of(operation, schema.overload_name)[0] for _, schema in overloads(operation)
    )
    if what.startswith("left") and compares:
        return "its kernel of CUDA compares devices itself, and takes no scalar of the CPU"
    return ""


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_all_operations_have_pytorchs_verdicts_and_the_cpus_values():
    found = Tried()
    for operation in operations():
        try_operation(operation, found)
    assert [each for each in found.differ if not reason_of(each)] == []
    assert found.counts["all on the GPU: fails"] == 0
    assert found.counts["all on the GPU: the CPU's values"] >= 675
    assert found.counts["all on the GPU: device agrees"] >= 640
    assert found.counts["all on the GPU: device differs"] <= 2
    assert found.counts["one left: agrees"] >= 850
    assert found.counts["one left: differs"] <= 60  # each for one of the reasons


@pytest.mark.slow
def test_the_operations_that_compare_devices_are_those_that_the_cuda_library_names():
    """The library holds the method's name only where it needs it: in the message of the check."""
    library = Path(torch.__path__[0]) / "lib" / "libtorch_cuda.so"
    if not library.exists():
        pytest.skip("this PyTorch has no CUDA library")
    with library.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        named = {each.decode() for each in re.findall(rb"\0(wrapper_CUDA_\w+)(?=\0)", data)}
    ours = set()
    for name in dir(torch.ops.aten):
        for _, schema in overloads(name):
            takes = any("Tensor" in str(each.type) for each in schema.arguments)
            checks, method = device_check_of(name, schema.overload_name)
            if takes and checks and not name.startswith(OTHER_NAMES):
                ours.add(method)
    assert len(ours) > 400 and ours <= named


#: gaps of CUDA's that the rehearsal does not have
NO_GAPS = {
    "einsum": "its first sample needs no product of matrices",
    "scatter_reduce": "the product and the extremes of truth values, which differ by an argument",
    "native_dropout_backward": "autograd alone calls it, and never for whole numbers",
    "norm": "complex numbers of 32 bits",
    "torch._scaled_mm": "types of AMD's cards",
    "torch._scaled_mm_v2": "the same",
}


@pytest.mark.filterwarnings("ignore")
def test_cuda_lacks_the_types_of_numbers_that_the_data_base_says_it_lacks():
    accepted, refused = set(), 0
    with rehearse():
        for operation in operations():
            lacking = operation.dtypes - operation.dtypesIfCUDA
            if torch.float16 not in lacking:
                lacking = lacking - {torch.bfloat16}  # asked of the card that is here
            for dtype in sorted(lacking, key=str) if operation.name not in NO_GAPS else ():
                sample = next(iter(operation.sample_inputs("cpu", dtype, requires_grad=False)))
                given = (sample.input, *sample.args), sample.kwargs
                try:
                    call(operation, moved(given))
                    accepted.add((operation.name, dtype))
                except NotImplementedError as error:
                    refused += 1
                    assert re.search("not implemented for|Could not run", str(error))
    assert accepted == set() and refused > 100


def test_operations_without_a_kernel_of_cuda_are_so_for_pytorchs_dispatcher():
    if not torch.backends.cuda.is_built():
        pytest.skip("this PyTorch has no kernels of CUDA")
    has = torch._C._dispatch_has_computed_kernel_for_dispatch_key
    every = torch._C._dispatch_get_all_op_names()
    # Those with a result to write into call the others.
    named = [
        each
        for each in every
        if NO_KERNEL.fullmatch(each.partition(".")[0]) and not each.endswith(("out", "_out"))
    ]
    assert "aten::histogram.bin_ct" in named and "quantized::linear_dynamic" in named
    assert [each for each in named if has(each, "CUDA")] == []


@pytest.mark.parametrize(
    ("operation", "makes"),
    [
        ("ones.default", True),
        ("arange.start", True),
        ("rand.default", True),
        ("clone.default", False),
        ("add.Tensor", False),
        ("zeros_like.default", False),
    ],
)
def test_an_operation_without_a_tensor_among_its_arguments_makes_one(operation, makes):
    name, _, overload = operation.partition(".")
    assert rule_of(getattr(getattr(torch.ops.aten, name), overload)).makes is makes


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["add", "where", "lerp", "dot", "index_fill"])
def test_a_scalar_left_on_the_cpu_is_accepted_where_fake_tensors_accept_it(name):
    scalar, whole = torch.ones(()), torch.ones(3)
    given = {
        "add": ((whole, scalar), {}),
        "where": ((whole > 0, whole, scalar), {}),
        "lerp": ((whole, whole.clone(), scalar), {}),
        "dot": ((torch.ones(1), torch.ones(1)), {}),
        "index_fill": ((whole, 0, torch.tensor([1]), scalar), {}),
    }[name]
    operation, last = getattr(torch, name), len(tensors_in(given)) - 1
    with rehearse():
        ours = verdict(operation, given, last)
    assert compare(ours, fake_verdict(operation, given, last)) == "agrees"


@pytest.mark.parametrize("change", ["", "_"])
@pytest.mark.parametrize(
    "name, given, words",
    [
        # TensorAdvancedIndexing.cpp views the index in as many dimensions as the tensor has
        ("index_fill", (0, torch.tensor(1), 2.0), "Expected all tensors to be on the same device"),
        ("masked_fill", (torch.tensor(True), 2.0), "expected self and mask to be on the same"),
    ],
)
def test_an_index_or_a_mask_without_dimensions_has_to_be_on_the_gpu_too(name, given, words, change):
    with rehearse():
        whole = torch.ones(3, device="cuda")
        operation = getattr(whole, f"{name}{change}")
        with pytest.raises(RuntimeError, match=words):
            operation(*given)
        moved = [part.cuda() if isinstance(part, torch.Tensor) else part for part in given]
        assert operation(*moved[:-1], torch.tensor(2.0)).device.type == "cuda"


def test_messages_name_types_of_numbers_as_pytorch_does():
    for dtype in TYPES:
        plain = torch.empty(0, dtype=dtype)
        assert type_name(plain, plain.device) == plain.type()


@pytest.mark.parametrize("name", ["stack", "block_diag"])
def test_scalars_are_joined_on_one_device_alone_as_by_pytorchs_references(name):
    """As in torch.stack([loss, torch.tensor(0.1)]); FakeTensorMode is more lenient."""
    losses = [torch.ones(()), torch.tensor(0.1)]
    given = (losses if name == "block_diag" else [losses]), {}
    for function in (getattr(torch, name), getattr(torch._refs, name)):
        with rehearse():
            found = [verdict(function, given, left) for left in (0, 1, None)]
        assert found == ["refused", "refused", ["cuda:0"]]
