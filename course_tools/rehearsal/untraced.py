"""Code that PyTorch would compile or trace: it runs as it stands."""

from collections.abc import Iterator
from typing import Any

import torch
from torch.utils import _python_dispatch

from course_tools.rehearsal.lines import describe, frame_at, spot
from course_tools.rehearsal.names import MISSING, Name, everywhere, replaced
from course_tools.rehearsal.operations import TORCH, Watch
from course_tools.rehearsal.placement import World, fake_mode


def names(running: World) -> Iterator[Name]:
    """Yield what is replaced of compilers, and of operations that take functions."""
    yield from _compilers(running)
    yield from _operations_on_functions(running)


def _compilers(running: World) -> Iterator[Name]:
    """Yield what leaves compilation out, and says so."""

    def compile_nothing(model: Any = None, **options: Any) -> Any:
        running.remark(f"Code was not compiled but ran as it stands: {describe(spot(2))}")
        return model if model is not None else (lambda function: function)

    script = torch.jit.script

    def script_nothing(model: Any, *args: Any, **options: Any) -> Any:
        if frame_at(1).f_code.co_filename.startswith(TORCH):  # which it needs for itself
            with replaced(each for each in running.before if each.value is not MISSING):
                return script(model, *args, **options)
        return compile_nothing(model)

    yield Name(torch, "compile", compile_nothing)
    yield Name(torch.jit, "script", script_nothing)


def _operations_on_functions(running: World) -> Iterator[Name]:
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

    asked = {"_get_current_dispatch_mode": _get_current_dispatch_mode}
    yield from everywhere(_python_dispatch, asked, "torch._higher_order_ops")
    yield Name(torch._ops.HigherOrderOperator, "__call__", call)
