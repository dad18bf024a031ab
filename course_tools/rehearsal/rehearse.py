"""The block in which a program believes in a GPU."""

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook

from course_tools.rehearsal import (
    autocast,
    data_parallel,
    distributed,
    gpu_modules,
    gradients,
    makers,
    processes,
    profiling,
    storages,
    tensors,
    untraced,
)
from course_tools.rehearsal.compiled_code import explain
from course_tools.rehearsal.operations import Watch
from course_tools.rehearsal.replacing import replaced
from course_tools.rehearsal.report import Report, report_of
from course_tools.rehearsal.setting import USUAL_CAPABILITY, Command, Setting, setting_of
from course_tools.rehearsal.world import State, World

#: what a program asks of PyTorch, and what stands there meanwhile
REPLACED = (
    *(tensors, makers, gradients, storages, gpu_modules, data_parallel),
    *(processes, distributed, untraced, autocast, profiling),
)
NO_COMMAND = Command()


class Rehearsal:
    """A rehearsal, and what it has seen so far."""

    def __init__(self, world: World) -> None:
        self._world = world

    @property
    def report(self) -> Report:
        """What was seen, up to now."""
        return report_of(self._world.seen, self._world.cards)

    def __repr__(self) -> str:
        return repr(self.report)

    def _repr_html_(self) -> str:
        return self.report._repr_html_()


@contextlib.contextmanager
def rehearse(
    kind: str = "cuda",
    *,
    gpus: int = 1,
    memory: str | int | None = None,
    capability: tuple[int, int] = USUAL_CAPABILITY,
    hide_real: bool = False,
) -> Iterator[Rehearsal]:
    """Let a program believe in GPUs that are not there, and check what it does with them.

    Args:
        kind: "cuda" (also for ROCm), "mps" or "xpu".
        gpus: how many there are; a Mac has one.
        memory: the memory of each for tensors, such as "16 GB", or bytes. Beyond it,
            torch.OutOfMemoryError is raised, on a Mac RuntimeError, as PyTorch does. None: nothing
            is refused.
        capability: CUDA's compute capability, (7, 5) for a T4.
        hide_real: rehearse although there is a real GPU, which the program then does not see.

    Yields:
        The rehearsal; its report can be read at any time. Inside another rehearsal this is that
        one, which must have the GPUs, the memory and the capability that are asked for.

    Raises:
        ValueError: for a kind, a number or a size that cannot be, or inside another rehearsal
            that differs.
        RuntimeError: if there is a real GPU.

    Example:
        >>> import torch
        >>> with rehearse("cuda", hide_real=True) as rehearsal:
        ...     rows = torch.ones(2, 3).to("cuda")
        ...     try:
        ...         rows + torch.ones(2, 3)
        ...     except RuntimeError as error:
        ...         print(error)
        Expected all tensors to be on the same device, ...
        >>> rehearsal.report.peak_bytes  # 2 x 3 numbers of 4 bytes
        (24,)
    """
    with begin(setting_of(kind, gpus, memory, capability), hide_real=hide_real) as rehearsal:
        yield rehearsal


@contextlib.contextmanager
def begin(
    setting: Setting, command: Command = NO_COMMAND, *, hide_real: bool = False
) -> Iterator[Rehearsal]:
    """Begin a rehearsal of what was asked for, or take part in the one that is running."""
    outer = State.world
    if outer is None:
        refuse_real_gpu(hide_real)
        yield from _run(World(setting, command, begin))
        return
    if not setting.holds_in(outer.setting):
        raise ValueError(
            f"a rehearsal of {outer.setting} is running: {setting} cannot be rehearsed inside it"
        )
    yield Rehearsal(outer)


def _run(world: World) -> Iterator[Rehearsal]:
    """Replace the names, watch the operations, and put everything back."""
    last_step = world.command.last_step

    def count_step(*_: Any) -> None:
        world.seen.steps += 1
        if last_step is not None and world.seen.steps >= last_step:
            raise LastStep

    default = default_device()
    with contextlib.ExitStack() as stack:
        State.world = world
        stack.callback(setattr, State, "world", None)
        hook = register_optimizer_step_post_hook(count_step)
        stack.callback(hook.remove)
        for module in REPLACED:
            world.originals += stack.enter_context(replaced(module.replacements(world)))
        stack.enter_context(autocast.kernels(world))
        stack.enter_context(Watch(world))
        try:
            yield Rehearsal(world)
        except Exception as error:
            explain(error)
            raise
        finally:
            if default_device() != default:
                torch.set_default_device(default)
            if default is None:
                vars(torch._GLOBAL_DEVICE_CONTEXT).pop("device_context", None)


def default_device() -> torch.device | None:
    """Return what torch.set_default_device was given, or None if it was not called."""
    context = getattr(torch._GLOBAL_DEVICE_CONTEXT, "device_context", None)
    return context and context.device


class LastStep(BaseException):
    """Ends a program after the steps that were asked for."""


def refuse_real_gpu(hide: bool) -> None:
    """Raise RuntimeError if there is a real GPU that nobody asked to hide."""
    if not hide and torch.accelerator.is_available():
        kind = torch.accelerator.current_accelerator()
        raise RuntimeError(
            f"there is a real accelerator here ({kind}): run the program on it, or rehearse with "
            "hide_real=True (--hide-real), and the program will not see it"
        )
