"""Autocast for a simulated GPU: the operations that PyTorch lists for that kind, in its types.

PyTorch's own kernels leave tensors of the CPU as they are. So these stand beside them, under a
dispatch key that no other device uses here, and are gone after the rehearsal.
"""

import contextlib
import functools
import re
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor
from torch.library import _scoped_library

from course_tools.rehearsal.placement import simulated_device
from course_tools.rehearsal.replacing import Replacement
from course_tools.rehearsal.world import World

KEY = torch._C.DispatchKey.AutocastPrivateUse1  # type: ignore[attr-defined]
WITHOUT_AUTOCAST = torch._C.DispatchKeySet(KEY)
#: in 16 bits; the layers are those that cuDNN computes in one call
LOWER = re.compile(
    r"_?(cudnn_)?conv\w*|prelu|addmm|addmv|addr|(chain_)?matmul|einsum|mm|mv|linear|addbmm|baddbmm"
    r"|bmm|linalg_(vecdot|multi_dot)|_?scaled_dot_product\w+|\w+_cell|lstm|gru|rnn_tanh|rnn_relu"
)
#: in the widest type among their tensors; what is in neither list is computed in 32 bits
WIDEST = re.compile(
    "addcdiv|addcmul|atan2|bilinear|cross|v?dot|grid_sampler|index_put|tensordot|scatter_add"
)
LAYERS = [f"{layer}.{how}" for layer in ("lstm", "gru") for how in ("input", "data")]
LAYERS += [f"rnn_{layer}.{how}" for layer in ("tanh", "relu") for how in ("input", "data")]
UNSAFE = (
    "torch.nn.functional.binary_cross_entropy and torch.nn.BCELoss are unsafe to autocast.\n"
    "Many models use a sigmoid layer right before the binary cross entropy layer.\n"
    "In this case, combine the two layers using "
    "torch.nn.functional.binary_cross_entropy_with_logits\n"
    "or torch.nn.BCEWithLogitsLoss.  binary_cross_entropy_with_logits and BCEWithLogits are\n"
    "safe to autocast."
)


def replacements(world: World) -> Iterator[Replacement]:
    """Yield what turns autocast on and off."""
    enable, clear = torch.set_autocast_enabled, torch.clear_autocast_cache

    def set_autocast_enabled(*asked: Any) -> None:
        kind, enabled = asked if len(asked) == 2 else ("cuda", asked[0])
        enable(kind, enabled)
        if kind == world.kind:
            torch._C._dispatch_tls_set_dispatch_key_included(KEY, enabled)
            torch._C._dispatch_tls_set_dispatch_key_excluded(KEY, not enabled)

    def clear_autocast_cache() -> None:
        clear()
        world.thread.cast_weights.clear()

    yield Replacement(torch, "set_autocast_enabled", set_autocast_enabled)
    yield Replacement(torch, "clear_autocast_cache", clear_autocast_cache)


@functools.cache
def listed(kind: str) -> list[str]:
    """Return the operations for which PyTorch has a kernel of autocast for a kind of GPU."""
    has = torch._C._dispatch_has_kernel_for_dispatch_key
    every = torch._C._dispatch_get_all_op_names()
    found = [each for each in every if has(each, f"Autocast{kind.upper()}")]
    return [each.removeprefix("aten::") for each in found if each.startswith("aten::")]


@contextlib.contextmanager
def kernels(world: World) -> Iterator[None]:
    """Give PyTorch the operations that autocast casts for, as long as the block runs."""
    with _scoped_library("_", "IMPL") as rest, _scoped_library("aten", "IMPL") as library:
        rest.m.fallback_fallthrough(KEY.name)  # older than Library.fallback
        for each in [*listed(world.kind), *LAYERS]:
            name, _, overload = each.partition(".")
            operation = getattr(getattr(torch.ops.aten, name), overload or "default")
            library.impl(each, kernel(world, name, operation), KEY.name)
        yield


def kernel(world: World, name: str, operation: Any) -> Callable[..., Any]:
    """Return an operation that casts its tensors on the GPU, and then is itself."""

    def type_for(values: tuple[Any, ...]) -> torch.dtype | None:
        if LOWER.fullmatch(name):
            return torch.get_autocast_dtype(world.kind)
        if WIDEST.fullmatch(name):
            types = {each.dtype for each in values if is_cast(world, each)}
            return torch.float32 if torch.float32 in types else None
        return None if any(isinstance(each, torch.dtype) for each in values) else torch.float32

    def call(*args: Any, **kwargs: Any) -> Any:
        with torch._C._ExcludeDispatchKeyGuard(WITHOUT_AUTOCAST):
            dtype = type_for((*args, *kwargs.values()))
            if dtype is None:
                return operation(*args, **kwargs)
            if name == "binary_cross_entropy":
                raise RuntimeError(UNSAFE)
            named = {each: cast(world, value, dtype) for each, value in kwargs.items()}
            return operation(*(cast(world, value, dtype) for value in args), **named)

    return call


def is_cast(world: World, value: Any) -> bool:
    """Tell whether autocast may change the type of a value."""
    floating = isinstance(value, Tensor) and value.is_floating_point()
    return floating and value.dtype != torch.float64 and simulated_device(value).type == world.kind


def cast(world: World, value: Any, dtype: torch.dtype) -> Any:
    """Return a value in another type; a weight is cast once until autocast ends, as in PyTorch."""
    if isinstance(value, (list, tuple)):
        return [cast(world, each, dtype) for each in value]
    if not is_cast(world, value) or value.dtype == dtype:
        return value
    kept = value.requires_grad and value.is_leaf and torch.is_grad_enabled()
    if not (kept and dtype != torch.float32 and torch.is_autocast_cache_enabled()):
        return torch.ops.aten.to.dtype(value, dtype)
    known = world.thread.cast_weights
    if id(value) not in known:
        known[id(value)] = value, torch.ops.aten.to.dtype(value, dtype)
    return known[id(value)][1]
