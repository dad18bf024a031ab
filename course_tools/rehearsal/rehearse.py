"""The block in which a program believes in a GPU."""

import contextlib
import re
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
from course_tools.rehearsal.memory import GIB, SimulatedGpu
from course_tools.rehearsal.operations import Watch
from course_tools.rehearsal.placement import State, World
from course_tools.rehearsal.replacing import replaced
from course_tools.rehearsal.report import Report, report_of

#: what a program asks of PyTorch, and what stands there meanwhile
REPLACED = (
    *(tensors, makers, gradients, storages, gpu_modules, data_parallel),
    *(processes, distributed, untraced, autocast, profiling),
)
#: the kinds of device that can be simulated
SIMULATED = ("cuda", "mps", "xpu")
USUAL_CAPABILITY = (8, 0)
USUAL_BYTES = 16 * GIB  # what a card says of itself if nobody gave a size


class Rehearsal:
    """A rehearsal, and what it has seen so far."""

    def __init__(self, world: World) -> None:
        self._world = world

    @property
    def report(self) -> Report:
        """What was seen, up to now."""
        return report_of(self._world)

    def note_command(self, script: tuple[str, ...], steps: int | None, notes: str) -> None:
        """Note what is rehearsed, a script or "-m" and a module, for how many steps, and where
        other processes note that they used a GPU.
        """
        self._world.script, self._world.last_step, self._world.notes = script, steps, notes

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
    world = make_world(kind, gpus, memory, capability)
    outer = State.world
    if outer is not None:
        asked = [(kind, outer.kind), (gpus, len(outer.cards))]
        if memory is not None:
            asked.append(
                (world.cards[0].total_bytes, outer.cards[0].limited and outer.cards[0].total_bytes)
            )
        if capability != USUAL_CAPABILITY:
            asked.append((world.capability, outer.capability))
        if any(one != other for one, other in asked):
            raise ValueError(
                f"a rehearsal of {described(outer)} is running: {described(world)} cannot be "
                "rehearsed inside it"
            )
        yield Rehearsal(outer)
        return
    refuse_real_gpu(hide_real)
    world.block = rehearse
    yield from _run(world)


def _run(world: World) -> Iterator[Rehearsal]:
    """Replace the names, watch the operations, and put everything back."""

    def count_step(*_: Any) -> None:
        world.steps += 1
        if world.last_step is not None and world.steps >= world.last_step:
            raise LastStep

    default = default_device()
    with contextlib.ExitStack() as stack:
        State.world = world
        stack.callback(setattr, State, "world", None)
        hook = register_optimizer_step_post_hook(count_step)
        stack.callback(hook.remove)
        for module in REPLACED:
            world.before += stack.enter_context(replaced(module.replacements(world)))
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


def make_world(
    kind: str, gpus: int, memory: str | int | None, capability: tuple[int, int]
) -> World:
    """Return what there shall be, or refuse what cannot be."""
    if kind not in SIMULATED:
        raise ValueError(f"kind {kind!r} cannot be rehearsed: there are {', '.join(SIMULATED)}")
    most = 1 if kind == "mps" else 64
    if isinstance(gpus, bool) or not isinstance(gpus, int) or not 1 <= gpus <= most:
        raise ValueError(f"gpus={gpus!r}: a rehearsal of {kind} has 1 to {most}")
    pair = tuple(capability) if isinstance(capability, (tuple, list)) else ()
    if len(pair) != 2 or not all(isinstance(each, int) for each in pair) or pair < (3, 0):
        raise ValueError(f"capability={capability!r}: give two whole numbers, (7, 5) for a T4")
    size = USUAL_BYTES if memory is None else size_bytes(memory)
    found = [SimulatedGpu(kind, index, size, memory is not None) for index in range(gpus)]
    return World(kind, found, (pair[0], pair[1]))


def described(world: World) -> str:
    """Return what there is in a rehearsal, in words."""
    card = world.cards[0]
    memory = f"{card.total_bytes:,} bytes" if card.limited else "memory without a limit"
    capability = "{}.{}".format(*world.capability)
    return f"{len(world.cards)} x {world.kind} with {memory} and capability {capability}"


def size_bytes(text: str | int) -> int:
    """Return a size in bytes: 16 GB is 16 * 10**9, 16 GiB is 16 * 2**30."""
    units = {"": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
    units |= {"KIB": 2**10, "MIB": 2**20, "GIB": GIB, "TIB": 2**40, "B": 1}
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", str(text))
    unit = units.get(found[2].upper()) if found else None
    size = int(float(found[1]) * unit) if found and unit else 0
    if size <= 0 or isinstance(text, bool):
        raise ValueError(f"memory={text!r} is not a size: write 16 GB, 500 MB, or bytes")
    return size


def refuse_real_gpu(hide: bool) -> None:
    """Raise RuntimeError if there is a real GPU that nobody asked to hide."""
    if not hide and torch.accelerator.is_available():
        kind = torch.accelerator.current_accelerator()
        raise RuntimeError(
            f"there is a real accelerator here ({kind}): run the program on it, or rehearse with "
            "hide_real=True (--hide-real), and the program will not see it"
        )
