"""Storages: written to files and read from them, shared between processes, moved to a GPU."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from course_tools.rehearsal.lines import current_spot, describe
from course_tools.rehearsal.placement import count_copy, mark_in, put
from course_tools.rehearsal.replacing import Replacement
from course_tools.rehearsal.world import CPU, World


def bytes_of(storage: Any) -> Tensor:
    """Return the tensor of all bytes of a storage."""
    with torch._C._DisableTorchDispatch():
        return torch.empty(0, dtype=torch.uint8).set_(storage)


def replacements(world: World) -> Iterator[Replacement]:
    """Yield what saves, loads, shares and moves a storage, and keeps where it is."""
    yield from _files(world)
    yield from _memory(world)


def _files(world: World) -> Iterator[Replacement]:
    """Yield what torch.save and torch.load ask where a storage is to be."""

    def tag(storage: Any) -> str | None:
        storage = getattr(storage, "_untyped_storage", storage)
        mark = mark_in(storage)
        if mark is None or mark.world is not world or mark.device.type == "cpu":
            return None
        world.seen.remark(
            f"A file with tensors of {mark.device} was saved at {describe(current_spot())}\n"
            '  Without a GPU, torch.load needs map_location="cpu" to read it.'
        )
        count_copy(bytes_of(storage), CPU, False)
        return str(mark.device)

    def restore(storage: Any, location: str) -> Any:
        if not str(location).startswith(world.kind):
            return None
        storage = getattr(storage, "_untyped_storage", storage)
        device = torch.device(location)
        if (device.index or 0) >= len(world.cards):
            raise RuntimeError(
                f"Attempting to deserialize object on CUDA device {device.index} but "
                f"torch.cuda.device_count() is {len(world.cards)}. Please use torch.load with "
                "map_location to map your storages to an existing device."
            )
        device = world.device(device)
        if len(world.cards) > 1 and device.index != world.thread.current:
            world.seen.remark(
                f"torch.load put tensors on {device}, but this process uses "
                f"{world.kind}:{world.thread.current}, at {describe(current_spot())}\n"
                '  Each process fills that GPU. Read with map_location="cpu".'
            )
        count_copy(bytes_of(storage), device, False)
        put(bytes_of(storage), device)
        return storage

    registry = [(0, tag, restore), *torch.serialization._package_registry]
    yield Replacement(torch.serialization, "_package_registry", registry)


def _memory(world: World) -> Iterator[Replacement]:
    """Yield what moves a storage to a GPU, and shares it with another process."""

    def to_gpu(storage: Any, device: Any = None, non_blocking: bool = False) -> Any:
        target = world.device(world.kind if device is None else device)
        copied = storage.clone()
        count_copy(bytes_of(copied), target, non_blocking)
        put(bytes_of(copied), target)
        return copied

    share = torch.UntypedStorage._new_shared.__func__  # type: ignore[attr-defined]

    def _new_shared(cls: Any, size: int, *, device: Any = "cpu") -> Any:
        if world.simulates(device):
            world.device(device)  # a forked process fails here, as it does with CUDA
            raise NotImplementedError(
                "a rehearsal does not simulate tensors of a GPU that one process sends to another: "
                "let the workers return tensors of the CPU, and move them in the loop"
            )
        return share(cls, size, device=device)

    share_memory: Any = torch.UntypedStorage.share_memory_

    def share_memory_(storage: Any) -> Any:
        mark = mark_in(storage)
        shared = mark is not None and mark.device.type != "cpu"  # as a GPU's memory always is
        return storage if shared else share_memory(storage)

    yield Replacement(torch.UntypedStorage, "share_memory_", share_memory_)
    yield Replacement(torch.UntypedStorage, "_new_shared", classmethod(_new_shared))
    yield Replacement(torch.UntypedStorage, "cuda", to_gpu)
