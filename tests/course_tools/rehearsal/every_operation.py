"""The operations of PyTorch's own test data base, tried on a simulated GPU and with fake tensors.

FakeTensorMode knows devices and no values, and needs no GPU; it is PyTorch's word on what a GPU
accepts. The values are compared with the CPU's.
"""

import logging
import sys
import types
import unittest
import warnings
from collections import Counter
from dataclasses import dataclass, field

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._pytree import tree_flatten, tree_unflatten

from course_tools.rehearsal import rehearse

logging.getLogger("torch._subclasses.fake_tensor").setLevel(logging.CRITICAL)
DEVICE_WORDS = ("device", "FakeTensor", "indices should be", "on cpu", "is on", "type (torch")


def operations():
    """Return the entries of the data base."""
    if "expecttest" not in sys.modules:  # asked for when imported, and not used here
        stand_in = types.ModuleType("expecttest")
        stand_in.TestCase = unittest.TestCase
        sys.modules["expecttest"] = stand_in
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from torch.testing._internal.common_methods_invocations import op_db
    # PyTorch's tests freeze its switches when they are imported; a Trainer of a later test sets one
    switches = torch.backends.disable_global_flags.__globals__
    switches["__allow_nonbracketed_mutation_flag"] = True
    return op_db


@dataclass
class Tried:
    """How the operations ended."""

    counts: Counter = field(default_factory=Counter)
    differ: list = field(default_factory=list)
    cannot: list = field(default_factory=list)


def tensors_in(value):
    return [each for each in tree_flatten(value)[0] if isinstance(each, torch.Tensor)]


def place(tensor):
    return str(tensor.device)


def moved(sample, stay=None):
    """Return a sample with its tensors on the GPU, but for one by number."""
    leaves, spec = tree_flatten(sample)
    number = -1
    placed = []
    for each in leaves:
        if isinstance(each, torch.Tensor):
            number += 1
            each = each.detach() if number == stay else each.detach().to("cuda:0")
        placed.append(each)
    return tree_unflatten(placed, spec)


def call(operation, sample, seed=0):
    (positional, named) = sample
    torch.manual_seed(seed)
    return operation(*positional, **named)


def verdict(operation, sample, stay=None):
    """Return "refused", the devices of the results, or what else happened."""
    try:
        out = call(operation, moved(sample, stay))
    except Exception as error:
        text = str(error)
        return "refused" if any(word in text for word in DEVICE_WORDS) else f"error: {text[:90]}"
    return [place(each) for each in tensors_in(out)]


def equal(one, other):
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    if one.layout != torch.strided:
        one, other = one.to_dense(), other.to_dense()
    if one.dtype.itemsize == 1 and one.dtype.is_floating_point:
        one, other = one.float(), other.float()
    if one.dtype.is_floating_point or one.dtype.is_complex:
        return bool(torch.allclose(one, other, rtol=1e-5, atol=1e-6, equal_nan=True))
    return torch.equal(one, other)


def sample_of(operation):
    """Return the first sample of an operation as positional and named arguments, or None."""
    torch.manual_seed(1)
    dtype = torch.float32
    if dtype not in operation.supported_dtypes("cpu"):
        dtype = next(iter(sorted(operation.supported_dtypes("cpu"), key=str)))
    sample = next(iter(operation.sample_inputs("cpu", dtype, requires_grad=False)), None)
    if sample is None:
        return None
    named = {name: value for name, value in sample.kwargs.items() if name != "device"}
    return (sample.input, *sample.args), named


def try_operation(operation, tried, leave=True):
    """Try one operation with everything on the GPU, then with each tensor left behind in turn."""
    name = f"{operation.name}.{operation.variant_test_name}".rstrip(".")
    try:
        sample = sample_of(operation)
    except Exception:
        sample = None
    if sample is None:
        tried.counts["no sample"] += 1
        return
    try:
        want = call(operation, moved_nowhere(sample))
    except Exception:
        tried.counts["the CPU cannot compute it"] += 1
        return
    fake_on = fake_verdict(operation, sample)
    with rehearse():
        try:
            got = call(operation, moved(sample))
            places = [place(each) for each in tensors_in(got)]
            back = [each.detach().cpu() for each in tensors_in(got)]
        except Exception as error:
            if isinstance(error, NotImplementedError) and not operation.dtypesIfCUDA:
                tried.counts["CUDA cannot compute it, and it is refused"] += 1
                return
            tried.counts["all on the GPU: fails"] += 1
            tried.differ.append((name, "all on the GPU", f"{type(error).__name__}: {error}"[:150]))
            return
    wanted = [each.detach() for each in tensors_in(want)]
    same = len(back) == len(wanted) and all(map(equal, back, wanted))
    tried.counts["all on the GPU: the CPU's values" if same else "all on the GPU: others"] += 1
    if not same:
        tried.differ.append((name, "values", ""))
    if isinstance(fake_on, list):
        agree = fake_on == places
        tried.counts["all on the GPU: device " + ("agrees" if agree else "differs")] += 1
        if not agree:
            tried.differ.append((name, "device", f"{places} against {fake_on}"))
    else:
        tried.counts["all on the GPU: fake tensors cannot"] += 1
        tried.cannot.append((name, fake_on))
    if not leave:
        return
    for number in range(len(tensors_in(sample))):
        with rehearse():
            ours = verdict(operation, sample, number)
        fakes = fake_verdict(operation, sample, number)
        key = compare(ours, fakes)
        tried.counts[f"one left: {key}"] += 1
        if key == "differs":
            tried.differ.append((name, f"left {number}", f"{ours} against {fakes}"))


def compare(ours, fakes):
    if not isinstance(fakes, list) and fakes != "refused":
        return "fake tensors cannot"
    if (ours == "refused") == (fakes == "refused") and (ours == "refused" or ours == fakes):
        return "agrees"
    return "differs"


def moved_nowhere(sample):
    leaves, spec = tree_flatten(sample)
    return tree_unflatten(
        [each.detach().clone() if isinstance(each, torch.Tensor) else each for each in leaves],
        spec,
    )


def fake_verdict(operation, sample, stay=None):
    with FakeTensorMode(allow_non_fake_inputs=True):
        return verdict(operation, sample, stay)
