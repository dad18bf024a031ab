"""Which tensors an operation accepts where, as tables, and PyTorch's words when it refuses.

The rule of most operations is one sentence: all tensors on one device. Those that go through
PyTorch's iterator over elements also take scalars of the CPU. The tables hold the exceptions.
Which check an operation makes on a GPU, and by which name it calls itself, is read from PyTorch's
own list of operations, which comes with it (torchgen).
"""

import functools
import importlib.util
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from course_tools.rehearsal.placement import Argument, simulated_device
from course_tools.rehearsal.world import CPU, current_world

#: these copy from anywhere to anywhere
ANYWHERE = {
    "aten::copy_",
    "aten::copy",
    "aten::_foreach_copy_",
    "aten::_foreach_copy",
    "aten::resize_as_",
    "aten::_to_copy",
    "aten::set_",
    "aten::slice_scatter",
    "aten::_has_compatible_shallow_copy_type",
}
#: position of the tensors that may be anywhere; -1: on the CPU or where the first tensor is
INDICES = {"aten::index": 1, "aten::index_put": 1, "aten::index_put_": 1}
INDICES |= {"aten::_unsafe_index": 1, "aten::_unsafe_index_put": 1, "aten::_index_put_impl_": 1}
#: position of the tensors that must be on the CPU
LENGTHS = {"aten::_pack_padded_sequence": 1}
#: positions of results that stay on the CPU
RESULTS_ON_CPU = {"aten::_pack_padded_sequence": (1,)}
#: positions and names of tensors that are on one device even if they have no dimensions: the
#: kernels view the index of index_fill in more of them, and compare the mask's device themselves
TOGETHER: dict[str, tuple[tuple[int, str], ...]] = {
    "aten::index_fill": ((0, "self"), (2, "index")),
    "aten::index_fill_": ((0, "self"), (2, "index")),
    "aten::masked_fill": ((0, "self"), (1, "mask")),
    "aten::masked_fill_": ((0, "self"), (1, "mask")),
}
#: no scalar of the CPU is accepted
NO_SCALARS = {"aten::block_diag", "aten::nextafter", "aten::stack"}
#: the host waits until the GPU has the value, or knows how large the result is
WAITS = {
    "aten::_local_scalar_dense": "one value is read, as .item() does",
    "aten::equal": "torch.equal",
    "aten::is_nonzero": "a condition",
    "aten::nonzero": "nonzero or a boolean mask",
    "aten::_nested_tensor_from_mask_left_aligned": "a padding mask of TransformerEncoder",
    "aten::_nested_tensor_from_mask": "a padding mask of TransformerEncoder",
    "aten::masked_select": "masked_select",
    "aten::masked_fill": "masked_fill with a value of the GPU",
    "aten::masked_fill_": "masked_fill with a value of the GPU",
    "aten::index_fill": "index_fill with a value of the GPU",
    "aten::index_fill_": "index_fill with a value of the GPU",
    "aten::allclose": "torch.allclose",
    "aten::linspace": "an end of linspace is read",
    "aten::logspace": "an end of logspace is read",
    "aten::normal": "torch.normal checks the standard deviations",
    "aten::histc": "histc finds its range",
    "aten::_ctc_loss": "ctc_loss copies the lengths",
    "aten::_ctc_loss_backward": "ctc_loss copies the lengths",
    "aten::_unique": "unique",
    "aten::_unique2": "unique",
    "aten::unique_dim": "unique",
    "aten::unique_consecutive": "unique",
    "aten::repeat_interleave": "repeat_interleave without output_size",
    "aten::bincount": "bincount",
    "aten::embedding_renorm_": "an embedding with max_norm",
    "aten::_to_sparse": "to_sparse",
    "aten::_to_sparse_csr": "to_sparse",
    "aten::_to_sparse_csc": "to_sparse",
    "aten::_coalesce": "coalesce",
    "aten::linalg_matrix_exp": "matrix_exp reads norms",
}
#: torch.linalg reads whether the algorithm succeeded
FACTORS = "_linalg_check_errors _linalg_eigh _linalg_eigvals _linalg_svd linalg_eig linalg_eigvals"
FACTORS += " linalg_lstsq cholesky cholesky_inverse"
WAITS |= {f"aten::{name}": "torch.linalg checks its result" for name in FACTORS.split()}
#: what an operation of the CPU is called on a GPU, and its argument there
ON_GPU = {("embedding", "indices"): ("index_select", "index")}
#: operations with words of their own
OWN_WORDS = {
    "masked_fill": "expected self and mask to be on the same device, but got mask on {mask} and "
    "self on {self}",
    "grid_sampler": "grid_sampler(): expected input and grid to be on same device, but input is on "
    "{input} and grid is on {grid}",
}
#: PyTorch's conversion of types in messages: torch.cuda.FloatTensor
TYPES = {
    torch.float32: "Float",
    torch.float64: "Double",
    torch.float16: "Half",
    torch.bfloat16: "BFloat16",
    torch.int64: "Long",
    torch.int32: "Int",
    torch.int16: "Short",
    torch.int8: "Char",
    torch.uint8: "Byte",
    torch.bool: "Bool",
    torch.complex64: "ComplexFloat",
    torch.complex128: "ComplexDouble",
}
#: PyTorch has kernels for the CPU alone
NO_KERNEL = re.compile(
    r"aten::(histogram|_histogramdd_\w+|quantized_(lstm|gru)|_spdiags|to_mkldnn)"
    r"|\w*prepacked::\w+_run|(quantized|sparse)::\w+_dynamic(_fp16)?"
)
SIXTEEN_BITS = (torch.float16, torch.bfloat16)
INTEGERS = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
#: what CUDA's kernel is called in its message, and the types of numbers that it lacks
LACKS = {
    "aten::mm": ("addmm_cuda", INTEGERS),
    "aten::addmm": ("addmm_cuda", INTEGERS),
    "aten::addbmm": ("addmm_cuda", INTEGERS),
    "aten::_trilinear": ("baddbmm_cuda", INTEGERS),
    "aten::bmm": ("baddbmm_cuda", INTEGERS),
    "aten::baddbmm": ("baddbmm_cuda", INTEGERS),
    "aten::mv": ("addmv_impl_cuda", INTEGERS),
    "aten::addmv": ("addmv_impl_cuda", INTEGERS),
    "aten::dot": ("dot", INTEGERS),
    "aten::vdot": ("vdot", INTEGERS),
    "aten::max_pool2d_with_indices": ("max_pool2d_with_indices_out_cuda_frame", INTEGERS),
    "aten::max_pool3d_with_indices": ("max_pool3d_with_indices_out_frame", INTEGERS),
    "aten::avg_pool2d": ("avg_pool2d_out_cuda_frame", (torch.int64,)),
    "aten::avg_pool3d": ("avg_pool3d_out_frame", (torch.int64,)),
    "aten::convolution": ("slow_conv2d_cuda", (torch.int64,)),
    "aten::upsample_bilinear2d": ("upsample_bilinear2d_out_frame", (torch.uint8,)),
    "aten::_upsample_bilinear2d_aa": ("upsample_bilinear2d_out_frame", (torch.uint8,)),
    "aten::upsample_bicubic2d": ("upsample_bicubic2d_out_frame", (torch.uint8,)),
    "aten::angle": ("angle_cuda", SIXTEEN_BITS),
    "aten::histc": ("histc", SIXTEEN_BITS),
    "aten::igamma": ("igamma_cuda", SIXTEEN_BITS),
    "aten::igammac": ("igammac_cuda", SIXTEEN_BITS),
    "aten::logaddexp": ("logaddexp_cuda", (torch.complex64, torch.complex128)),
}
#: of 16 bits they run in 32 and are rounded. A GPU adds up in 32 bits, but for a few steps (notes
#: of PyTorch on numerical accuracy). A CPU without instructions for 16 bits takes some forty times
#: as long in them (measured on an AMD EPYC with AVX2).
SLOW = {"aten::convolution", "aten::convolution_backward"}
SLOW |= {"aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm", "aten::addbmm"}
#: how the names of PyTorch's own operations begin
PYTORCHS: tuple[str, ...] = (
    "aten::",
    "prim",
    "rngprims::",
    "c10d",
    "_c10d",
    "quantized::",
    "mkldnn::",
    "fsdp::",
)
PYTORCHS += ("profiler::", "_dtensor::", "symm_mem::", "inductor::", "streams::", "sparse::")
VERSION = tuple(int(part) for part in torch.__version__.split(".")[:2])
NEW_WORDS = VERSION >= (2, 9)
#: what a mask of the CPU picks is copied from pinned memory (pytorch 156384)
MASKS_ARE_PINNED = VERSION >= (2, 9)
#: a number of Python's becomes a tensor of the CPU first: `rows[0] = 1.0` (pytorch 189105)
NUMBERS_ARE_COPIED = VERSION < (2, 15)


def is_there(value: Any) -> bool:
    """Tell whether a value is a tensor on a GPU."""
    return isinstance(value, Tensor) and simulated_device(value).type != "cpu"


#: operations that wait for some arguments only; by the names of the arguments
WAITS_IF: dict[str, Callable[[dict[str, Any]], bool]] = {
    "aten::repeat_interleave": lambda given: given.get("output_size") is None,
    "aten::histc": lambda given: given.get("min", 0) == given.get("max", 0),
    "aten::normal": lambda given: is_there(given.get("std")),
    "aten::masked_fill": lambda given: is_there(given.get("value")),
    "aten::masked_fill_": lambda given: is_there(given.get("value")),
    "aten::index_fill": lambda given: is_there(given.get("value")),
    "aten::index_fill_": lambda given: is_there(given.get("value")),
}


@dataclass(frozen=True)
class Rule:
    """What is asked of the tensors of one operation."""

    name: str
    anywhere: bool
    indices: int | None
    lengths: int | None
    scalars: bool
    foreach: bool
    exchange: bool  #: between processes
    waits: str
    makes: bool  #: takes no tensor
    slow: bool  #: on a CPU in 16 bits
    absent: str  #: its name in full, if there is no kernel for a GPU
    lacks: tuple[str, tuple[torch.dtype, ...]]  #: types of numbers, and who lacks them
    foreign: bool  #: of another package, or the program's own
    changes: tuple[tuple[int, str], ...]  #: positions and names of what is written to
    together: tuple[tuple[int, str], ...]  #: the same for those that are never scalars of the CPU
    cpu_results: tuple[int, ...]


@functools.cache
def rule_of(func: Any) -> Rule:
    """Return the rule of an operation."""
    schema = func._schema
    name, overload = schema.name, schema.overload_name
    arguments = schema.arguments
    written = [
        (index, each.name)
        for index, each in enumerate(arguments)
        if each.alias_info is not None and each.alias_info.is_write
    ]
    takes = any("Tensor" in str(arg.type) for arg in arguments)
    compares, _ = device_check_of(name.removeprefix("aten::"), overload)
    return Rule(
        name=name,
        anywhere=name in ANYWHERE,
        indices=INDICES.get(name),
        lengths=LENGTHS.get(name),
        scalars=name not in NO_SCALARS and not compares,
        foreach=name.startswith(("aten::_foreach_", "aten::_fused_", "aten::_amp_foreach_")),
        exchange=name.startswith(("c10d::", "_c10d_functional::")),
        waits=WAITS.get(name, ""),
        makes=not takes,
        slow=name in SLOW and not written,
        absent=f"{name}.{overload}".strip(".") if NO_KERNEL.fullmatch(name) else "",
        lacks=LACKS.get(name, ("", ())),
        foreign=not schema.name.startswith(PYTORCHS),
        changes=tuple(written),
        together=TOGETHER.get(name, ()),
        cpu_results=RESULTS_ON_CPU.get(name, ()),
    )


def common_device(
    tensors: list[Tensor], devices: list[torch.device], scalars: bool
) -> torch.device | None:
    """Return the device of an operation's tensors, or None if they are on several."""
    found = None
    only_scalars = True
    for tensor, device in zip(tensors, devices, strict=True):
        scalar = scalars and device.type == "cpu" and tensor.dim() == 0
        if found is None or (only_scalars and not scalar):
            found, only_scalars = device, scalar
        elif not scalar and device != found:
            return None
    return found if found is not None else CPU


def type_name(tensor: Tensor, device: torch.device) -> str:
    """Return the name of a tensor's type in messages: torch.cuda.FloatTensor."""
    module = "torch" if device.type == "cpu" else f"torch.{device.type}"
    return f"{module}.{TYPES.get(tensor.dtype, str(tensor.dtype))}Tensor"


@functools.cache
def _list_of_operations() -> str:
    found = importlib.util.find_spec("torchgen")
    folder = Path(found.submodule_search_locations[0]) if found else None  # type: ignore[index]
    path = folder / "packaged/ATen/native/native_functions.yaml" if folder else None
    return path.read_text(encoding="utf-8") if path and path.is_file() else ""


def device_check_of(name: str, overload: str) -> tuple[bool, str]:
    """Return whether an operation checks device by device, and its method's name on a GPU."""
    full = f"{name}.{overload}" if overload else name
    text = _list_of_operations()
    start = text.find(f"\n- func: {full}(")
    entry = text[start + 1 : text.find("\n- func: ", start + 1)] if start >= 0 else ""
    structured = "structured" in entry
    writes_out = "(a!)" in entry.partition("\n")[0] and not name.endswith("_")
    base = f"{name}_out" if writes_out else name
    parts = [base, overload] if structured else [overload, base]
    method = "_".join(["wrapper_CUDA", *(parts if overload or not structured else [base])])
    kernel = re.search(r"^\s+(.*, )?CUDA\b.*:", entry, re.M)
    return bool(kernel or structured) and "device_check: NoCheck" not in entry, method


def refusal(func: Any, given: list[Argument], scalars: bool) -> tuple[str, Argument]:
    """Return PyTorch's message for tensors on several devices, and the one left behind."""
    name = func._schema.name.removeprefix("aten::")
    gpu = next(each.device for each in given if each.device.type != "cpu")
    if name == "convolution" and (refused := _refused_convolution(given)):
        return refused
    in_order = [each for each in given if not (scalars and _is_scalar(each))]
    elsewhere = [each for each in (*in_order, *given) if each.device != gpu]
    odd = elsewhere[0] if elsewhere else given[-1]
    own = OWN_WORDS.get(name.removesuffix("_").removesuffix("_2d").removesuffix("_3d"))
    if own and gpu.type == "cuda":
        return own.format(**{each.name: each.device for each in given}), odd
    checks, method = device_check_of(name, func._schema.overload_name)
    checks = checks or (name, "indices") in ON_GPU
    if checks and gpu.type == "cuda":
        return _refused_check(name, method, in_order), odd
    if checks and gpu.type == "mps" and odd.device.type == "cpu":
        return f"Tensor for argument {odd.name} is on cpu but expected on mps", odd
    return (
        "Expected all tensors to be on the same device, but found at least two devices, "
        f"{gpu} and {odd.device}!",
        odd,
    )


def _refused_check(name: str, method: str, in_order: list[Argument]) -> str:
    """Return the message of an operation that checks device by device."""
    first = in_order[0].device
    differs = next(each for each in in_order if each.device != first)
    argument = differs.name
    if (name, "indices") in ON_GPU:
        operation, index = ON_GPU[name, "indices"]
        method = f"wrapper_CUDA__{operation}"
        argument = index if argument == "indices" else "self"
    if NEW_WORDS:
        return (
            f"Expected all tensors to be on the same device, but got {argument} is on "
            f"{differs.device}, different from other tensors on {first} "
            f"(when checking argument in method {method})"
        )
    return (
        "Expected all tensors to be on the same device, but found at least two devices, "
        f"{first} and {differs.device}! (when checking argument for argument {argument} in method "
        f"{method})"
    )


def _is_scalar(argument: Argument) -> bool:
    return argument.tensor.dim() == 0 and argument.device.type == "cpu"


def _refused_convolution(given: list[Argument]) -> tuple[str, Argument] | None:
    """Return the message of a convolution, whose input decides, and the tensor left behind."""
    named = {each.name: each for each in given}
    source = named["input"]
    for name in ("weight", "bias"):
        other = named.get(name)
        if other is None or other.device == source.device:
            continue
        if "cpu" not in (other.device.type, source.device.type):
            return None  # between two GPUs, the usual words
        kinds = [type_name(each.tensor, each.device) for each in (source, other)]
        message = f"Input type ({kinds[0]}) and {name} type ({kinds[1]}) should be the same"
        if source.device.type == "cpu":
            message += f" or input should be a MKLDNN tensor and {name} is a dense tensor"
        return message, source if source.device.type == "cpu" else other
    return None


def indices_problem(tensors: list[Tensor | None], own: torch.device) -> str:
    """Return PyTorch's message for indices that are on a third device, or ""."""
    for tensor in tensors:
        if tensor is not None and simulated_device(tensor) not in (CPU, own):
            allowed = "either on cpu or on the same device as the indexed tensor"
            return f"indices should be {allowed} ({own})"
    return ""


def wait_of(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """Return what the host waits for in an operation on a GPU, or ""."""
    rule = rule_of(func)
    if rule.waits and rule.name in WAITS_IF:
        names = [each.name for each in func._schema.arguments]
        given = dict(zip(names, args, strict=False)) | kwargs
        return rule.waits if WAITS_IF[rule.name](given) else ""
    return rule.waits


def lengths_problem(lengths: Tensor) -> str:
    """Return PyTorch's message for lengths that are not on the CPU, or ""."""
    device = simulated_device(lengths)
    if device.type == "cpu":
        return ""
    return (
        "'lengths' argument should be a 1D CPU int64 tensor, but got "
        f"{lengths.dim()}D {device} {TYPES.get(lengths.dtype)} tensor"
    )


def check_kernel(rule: Rule, tensors: list[Tensor]) -> None:
    """Raise what PyTorch raises where CUDA has no kernel, or none for this type of numbers."""
    if rule.absent:
        raise NotImplementedError(
            f"Could not run '{rule.absent}' with arguments from the 'CUDA' backend. This could be "
            "because the operator doesn't exist for this backend, or was omitted during the "
            "selective/custom build process (if using custom build)."
        )
    kernel, types = rule.lacks
    for tensor in tensors:
        if tensor.dtype in types:
            raise NotImplementedError(f"\"{kernel}\" not implemented for '{TYPES[tensor.dtype]}'")


def generator_problem(generator: Any, device: torch.device) -> str:
    """Return PyTorch's message for a generator of another device, or ""."""
    if generator is None:
        return ""
    own = current_world().generators.get(generator._cdata, generator.device)
    if own.type == device.type:
        return ""
    return f"Expected a '{device.type}' device type for generator but found '{own.type}'"
