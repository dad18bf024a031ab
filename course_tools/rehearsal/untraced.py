"""Code that PyTorch would compile or trace: it runs as it stands."""

import sys
from collections.abc import Iterator
from typing import Any

import torch
from torch.utils import _python_dispatch
from torch.utils._pytree import tree_leaves

from course_tools.rehearsal.lines import TORCH, current_spot, describe
from course_tools.rehearsal.operations import Watch
from course_tools.rehearsal.placement import fake_mode, simulated_device
from course_tools.rehearsal.replacing import MISSING, Replacement, everywhere, replaced
from course_tools.rehearsal.world import World


def replacements(world: World) -> Iterator[Replacement]:
    """Yield what is replaced of compilers, and of operations that take functions."""
    yield from _compilers(world)
    yield from _operations_on_functions(world)


def _compilers(world: World) -> Iterator[Replacement]:
    """Yield what leaves compilation out, and says so."""

    def compile_nothing(model: Any = None, **options: Any) -> Any:
        world.seen.remark(f"Code was not compiled but ran as it stands: {describe(current_spot())}")
        return model if model is not None else (lambda function: function)

    export = torch.export.export

    def export_from_cpu(mod: torch.nn.Module, args: Any, *more: Any, **how: Any) -> Any:
        tensors = [*mod.parameters(), *mod.buffers(), *tree_leaves(args)]
        devices = [simulated_device(each) for each in tensors if isinstance(each, torch.Tensor)]
        if any(device.type == world.kind for device in devices):
            raise NotImplementedError(
                "torch.export.export: a rehearsal does not trace what is on a GPU. Export it from "
                "the CPU (model.cpu(), and its inputs), or leave this out in a rehearsal."
            )
        return export(mod, args, *more, **how)

    script = torch.jit.script

    def script_nothing(obj: Any, *args: Any, **options: Any) -> Any:
        if sys._getframe(1).f_code.co_filename.startswith(TORCH):  # which it needs for itself
            with replaced(each for each in world.originals if each.value is not MISSING):
                return script(obj, *args, **options)
        return compile_nothing(obj)

    yield Replacement(torch, "compile", compile_nothing)
    yield Replacement(torch.jit, "script", script_nothing)
    yield Replacement(torch.export, "export", export_from_cpu)


def _operations_on_functions(world: World) -> Iterator[Replacement]:
    """Yield what runs the functions that torch.cond or flex_attention were given as they stand.

    PyTorch would trace them for the backward pass, with fake tensors of a GPU, which autograd then
    asks the driver for: the process ends there.
    """
    plain = torch._ops.HigherOrderOperator.__call__
    mode_of = _python_dispatch._get_current_dispatch_mode

    def call(operation: Any, *args: Any, **kwargs: Any) -> Any:
        kernel = operation.py_kernels.get(torch._C.DispatchKey.CompositeExplicitAutograd)
        if kernel is None or fake_mode() or torch._C._are_functorch_transforms_active():
            return plain(operation, *args, **kwargs)
        return kernel(*args, **kwargs)

    def _get_current_dispatch_mode() -> Any:
        mode = mode_of()
        return None if isinstance(mode, Watch) else mode  # these kernels insist on none

    values = {"_get_current_dispatch_mode": _get_current_dispatch_mode}
    yield from everywhere(_python_dispatch, values, "torch._higher_order_ops")
    yield Replacement(torch._ops.HigherOrderOperator, "__call__", call)
