"""Every operation of PyTorch's test data base against FakeTensorMode and the CPU's values."""

import pytest
from every_operation import Tried, operations, try_operation

from course_tools.rehearsal.rules import on_gpu

#: differences from FakeTensorMode, and from the CPU's values, with the reason
REASONS = {
    "nn.functional.conv": "a convolution compares the types of input and weight, device included",
    "linspace.tensor_overload": "made on the device that is asked for; FakeTensorMode says the CPU",
    "logspace.tensor_overload": "as linspace",
    "tensor_split": "the data base holds the function itself; programs reach it by its name",
    "empty": "uninitialized memory has no values",
    "new_empty": "uninitialized memory has no values",
}
#: operations whose method on a GPU has another name than their own
METHODS = {"normal": ("normal", "Tensor_Tensor"), "bucketize": ("bucketize", "Tensor")}
SAMPLED = 12  # each twelfth operation in the ordinary tests


def reason_of(difference):
    """Return why a verdict may differ, or ""."""
    name, what, _ = difference
    for start, reason in REASONS.items():
        if name.startswith(start) and reason:
            return reason
    if what.startswith("left"):
        operation, overload = METHODS.get(name, (name.partition(".")[0], ""))
        if on_gpu(operation, overload)[0]:
            return "the kernel of CUDA compares devices itself, and takes no scalar of the CPU"
    return ""


def tried(chosen):
    found = Tried()
    for operation in chosen:
        try_operation(operation, found)
    print(dict(found.counts))
    return found


@pytest.mark.filterwarnings("ignore")
def test_a_sample_of_all_operations_has_pytorchs_verdicts_and_the_cpus_values():
    found = tried(operations()[::SAMPLED])
    assert [each for each in found.differ if not reason_of(each)] == []
    assert found.counts["all on the GPU: the CPU's values"] > 50
    assert found.counts["one left: agrees"] > 50


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
def test_all_operations_have_pytorchs_verdicts_and_the_cpus_values():
    found = tried(operations())
    assert [each for each in found.differ if not reason_of(each)] == []
    assert found.counts["all on the GPU: fails"] == 0
    assert found.counts["all on the GPU: the CPU's values"] > 670
    assert found.counts["one left: agrees"] > 850
