"""Every operation of PyTorch's test data base against FakeTensorMode and the CPU's values."""

import mmap
import os
import re
from pathlib import Path

import pytest
import torch
from every_operation import Tried, call, moved, operations, try_operation

from course_tools.rehearsal import rehearse
from course_tools.rehearsal.rules import NO_KERNEL, on_gpu

#: differences from FakeTensorMode, and from the CPU's values, with the reason
REASONS = {
    "nn.functional.conv": "a convolution compares the types of input and weight, device included",
    "linspace.tensor_overload": "made on the device that is asked for; FakeTensorMode says the CPU",
    "logspace.tensor_overload": "as linspace",
    "tensor_split": "the data base holds the function itself; programs reach it by its name",
    "empty": "uninitialized memory has no values",
    "new_empty": "uninitialized memory has no values",
}
SAMPLED = 24  # each so manieth operation, in a minute
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
    compares = any(on_gpu(operation, schema.overload_name)[0] for _, schema in overloads(operation))
    if what.startswith("left") and compares:
        return "its kernel of CUDA compares devices itself, and takes no scalar of the CPU"
    return ""


def tried(chosen):
    found = Tried()
    for operation in chosen:
        try_operation(operation, found)
    print(dict(found.counts))
    return found


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_sample_of_all_operations_has_pytorchs_verdicts_and_the_cpus_values():
    found = tried(operations()[::SAMPLED])
    assert [each for each in found.differ if not reason_of(each)] == []
    assert found.counts["all on the GPU: the CPU's values"] > 25
    assert found.counts["one left: agrees"] > 25


@pytest.mark.slow
@pytest.mark.skipif("ALL_OPERATIONS" not in os.environ, reason="minutes: set ALL_OPERATIONS=1")
@pytest.mark.filterwarnings("ignore")
def test_all_operations_have_pytorchs_verdicts_and_the_cpus_values():
    found = tried(operations())
    assert [each for each in found.differ if not reason_of(each)] == []
    assert found.counts["all on the GPU: fails"] == 0
    assert found.counts["all on the GPU: the CPU's values"] > 670
    assert found.counts["one left: agrees"] > 850


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
            checks, method = on_gpu(name, schema.overload_name)
            if takes and checks and not name.startswith(OTHER_NAMES):
                ours.add(method)
    assert len(ours) > 400 and ours <= named


#: what products and pooling are called in the data base
WHOLE_NUMBERS = ("mm", "addmm", "bmm", "baddbmm", "mv", "addmv", "dot", "vdot", "matmul", "inner")
WHOLE_NUMBERS += ("nn.functional.linear", "nn.functional.max_pool2d")


@pytest.mark.filterwarnings("ignore")
def test_cuda_lacks_the_whole_numbers_that_the_data_base_says_it_lacks():
    refused = 0
    for operation in operations():
        lacking = operation.dtypes - operation.dtypesIfCUDA
        for dtype in lacking if operation.name in WHOLE_NUMBERS else ():
            if dtype.is_floating_point:
                continue  # asked of the card that is here
            sample = next(iter(operation.sample_inputs("cpu", dtype, requires_grad=False)))
            given = (sample.input, *sample.args), sample.kwargs
            with rehearse(), pytest.raises(NotImplementedError, match="not implemented for"):
                call(operation, moved(given))
            refused += 1
    assert refused > 50


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
