"""Distributed training: what NCCL would exchange between GPUs, gloo exchanges on the CPU."""

import functools
from collections.abc import Iterator
from typing import Any

import torch.distributed as dist
from torch.distributed import distributed_c10d as c10d

from course_tools.rehearsal.replacing import Replacement, everywhere
from course_tools.rehearsal.world import World

#: the exchange between GPUs, which gloo takes the place of
BETWEEN_GPUS = {"nccl": "cuda", "xccl": "xpu"}


def replacements(world: World) -> Iterator[Replacement]:
    """Yield what lets processes exchange with gloo what NCCL would exchange between GPUs."""
    if dist.is_available():
        asked_for: dict[str, str] = {}  #: the backend of each group by its name, "" for the default
        yield from _groups(world, asked_for)
        yield from _answers(world, asked_for)
        yield from _exchanges(world)


def without_gpus(world: World, backend: Any) -> tuple[Any, str]:
    """Return the backend that runs here, and the one that was asked for if it needs GPUs."""
    text = str(backend or "").lower()
    if BETWEEN_GPUS.get(text) == world.kind:
        return "gloo", text
    if any(each in text for each in BETWEEN_GPUS):
        return "gloo", ""  # one for each kind of device
    return backend, ""


def group_name(group: Any) -> str:
    """Return the name of a group of processes; None is the default group."""
    return str((group or c10d._get_default_group()).group_name)


def _groups(world: World, asked_for: dict[str, str]) -> Iterator[Replacement]:
    """Yield what makes groups of processes, and keeps which backend each was asked for."""
    start, add = c10d.init_process_group, c10d.new_group

    @functools.wraps(start)
    def init_process_group(backend: Any = None, *args: Any, **kwargs: Any) -> None:
        device = kwargs.pop("device_id", None)
        if device is not None:
            world.device(device)
        here, asked = without_gpus(world, backend)
        if here != backend:
            kwargs.pop("pg_options", None)
        start(here, *args, **kwargs)
        world.exchange_on_gpu = bool(asked)
        asked_for[""] = asked_for[group_name(None)] = asked

    @functools.wraps(add)
    def new_group(
        ranks: Any = None, timeout: Any = None, backend: Any = None, *args: Any, **kwargs: Any
    ) -> Any:
        kwargs.pop("device_id", None)
        here, asked = without_gpus(world, backend)
        if here != backend:
            kwargs.pop("pg_options", None)
        group = add(ranks, timeout, here, *args, **kwargs)
        if isinstance(group, dist.ProcessGroup):
            asked_for[group_name(group)] = asked if backend else asked_for.get("", "")
        return group

    made = {"init_process_group": init_process_group, "new_group": new_group}
    yield from everywhere(c10d, made, "torch.distributed")


def _answers(world: World, asked_for: dict[str, str]) -> Iterator[Replacement]:
    """Yield what tells with which backend, and on which devices, a group exchanges."""
    ask, choose = c10d.get_backend, c10d._get_object_coll_device

    @functools.wraps(ask)
    def get_backend(group: Any = None) -> Any:
        found = ask(group)
        return c10d.Backend(asked_for.get(group_name(group), "") or found)

    @functools.wraps(choose)
    def _get_object_coll_device(group: Any = None) -> str:
        return world.kind if asked_for.get(group_name(group)) else choose(group)

    made = {"get_backend": get_backend, "_get_object_coll_device": _get_object_coll_device}
    yield from everywhere(c10d, made, "torch.distributed")


def _exchanges(world: World) -> Iterator[Replacement]:
    """Yield the exchanges that take other arguments or numbers with NCCL than with gloo."""
    wait, reduce = c10d.barrier, c10d.all_reduce

    @functools.wraps(wait)
    def barrier(group: Any = None, async_op: bool = False, device_ids: Any = None) -> Any:
        return wait(group, async_op)

    @functools.wraps(reduce)
    def all_reduce(tensor: Any, op: Any = dist.ReduceOp.SUM, *args: Any, **kwargs: Any) -> Any:
        if op != dist.ReduceOp.AVG or tensor.is_floating_point():
            return reduce(tensor, op, *args, **kwargs)
        done = reduce(tensor, dist.ReduceOp.SUM, *args, **kwargs)
        if done is not None:
            done.wait()  # gloo cannot average whole numbers, as NCCL does
        group = args[0] if args else kwargs.get("group")
        tensor.div_(dist.get_world_size(group), rounding_mode="trunc")
        return done

    made = {
        "barrier": barrier,
        "all_reduce": all_reduce,
        "is_nccl_available": lambda: world.kind == "cuda",
    }
    yield from everywhere(c10d, made, "torch.distributed")
