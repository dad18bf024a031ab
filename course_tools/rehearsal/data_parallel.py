"""torch.nn.DataParallel on simulated GPUs: its copies, and tensors grouped by device."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.nn.parallel import _functions, comm

from course_tools.rehearsal.gpu_modules import index_of
from course_tools.rehearsal.placement import move, simulated_device
from course_tools.rehearsal.replacing import Replacement
from course_tools.rehearsal.world import World


def replacements(world: World) -> Iterator[Replacement]:
    """Yield what torch.nn.DataParallel copies with, and what groups tensors by device."""
    yield from _broadcasts(world)
    yield from _sums(world)
    yield from _scatters(world)
    yield Replacement(torch._C, "_group_tensors_by_device_and_dtype", group_by_device)


def moved(world: World, tensor: Tensor, device: Any) -> Tensor:
    """Return a tensor on a device, which DataParallel may name by its number."""
    return move(tensor, world.device(device))


def _broadcasts(world: World) -> Iterator[Replacement]:
    """Yield what copies the same tensors to several GPUs."""

    def broadcast(tensor: Tensor, devices: Any = None, *, out: Any = None) -> Any:
        if out is not None:
            return tuple(each.copy_(tensor) for each in out)
        return tuple(moved(world, tensor, device) for device in devices)

    def broadcast_coalesced(tensors: Any, devices: Any, buffer_size: int = 0) -> Any:
        return [[moved(world, each, device) for each in tensors] for device in devices]

    for function in (broadcast, broadcast_coalesced):
        yield Replacement(comm, function.__name__, function)


def _sums(world: World) -> Iterator[Replacement]:
    """Yield what adds up the tensors of several GPUs on one."""

    def reduce_add(inputs: Any, destination: Any = None) -> Tensor:
        device = world.device(index_of(world, destination))
        total = moved(world, inputs[0], device).clone()
        for each in inputs[1:]:
            total += moved(world, each, device)
        return total

    def reduce_add_coalesced(inputs: Any, destination: Any = None, buffer_size: int = 0) -> Any:
        return tuple(reduce_add(each, destination) for each in zip(*inputs, strict=True))

    for function in (reduce_add, reduce_add_coalesced):
        yield Replacement(comm, function.__name__, function)


def _scatters(world: World) -> Iterator[Replacement]:
    """Yield what cuts a batch for several GPUs, and joins the parts again."""

    def scatter(
        tensor: Tensor,
        devices: Any = None,
        chunk_sizes: Any = None,
        dim: int = 0,
        streams: Any = None,
        *,
        out: Any = None,
    ) -> Any:
        devices = devices or [simulated_device(each) for each in out]
        chunks = tensor.split(chunk_sizes, dim) if chunk_sizes else tensor.chunk(len(devices), dim)
        pairs = zip(chunks, devices, strict=False)
        return tuple(moved(world, each, device) for each, device in pairs)

    def gather(tensors: Any, dim: int = 0, destination: Any = None, *, out: Any = None) -> Any:
        on_cpu = destination in (-1, "cpu", torch.device("cpu"))
        device = torch.device("cpu") if on_cpu else index_of(world, destination)
        return torch.cat([moved(world, each, device) for each in tensors], dim)

    def forward(ctx: Any, devices: Any, sizes: Any, dim: int, tensor: Tensor) -> Any:
        ctx.dim, ctx.input_device = dim, tensor.get_device()
        return scatter(tensor, devices, sizes, dim)

    yield Replacement(_functions.Scatter, "forward", staticmethod(forward))
    yield Replacement(comm, "scatter", scatter)
    yield Replacement(comm, "gather", gather)


def group_by_device(lists: list[list[Any]], with_indices: bool = False) -> dict[Any, Any]:
    """Group lists of tensors by device and type of the first list, as optimizers ask for."""
    groups: dict[Any, Any] = {}
    for index, first in enumerate(lists[0]):
        key = (simulated_device(first), first.dtype)
        columns, indices = groups.setdefault(key, ([[] for _ in lists], []))
        for column, each in zip(columns, lists, strict=True):
            if each:
                column.append(each[index])
        if with_indices:
            indices.append(index)
    return groups
