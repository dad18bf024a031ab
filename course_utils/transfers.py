"""Move nested data to a device."""

import copy
import dataclasses
from collections import UserDict
from collections.abc import Callable
from typing import Any, TypeVar

import torch

from course_utils.devices import Device, as_torch_device
from course_utils.kinds import kind_called
from course_utils.xla import start_xla

T = TypeVar("T")
# what batches hold most often besides tensors
PLAIN = frozenset({str, bytes, int, float, bool, type(None)})


def to_device(
    obj: T, device: Device | torch.device | str | None, *, non_blocking: bool = False
) -> T:
    """Return `obj` with every tensor in it on `device`, and everything else unchanged.

    It looks into dicts, lists, tuples, named tuples, dataclasses and their subclasses.
    Anything with a method `.to` is moved by that method: a module in place, as `module.to` does,
    which on XLA gives it new parameters. A tensor that occurs twice is moved once and
    stays shared, but two views of one storage become two tensors. Containers are copied, never
    changed. Any other object is returned as it is, without a look inside.

    >>> batch = to_device({"pixels": torch.ones(2, 3), "names": ["a", "b"]}, "cpu")
    >>> batch["pixels"].device, batch["names"]
    (device(type='cpu'), ['a', 'b'])

    Args:
        obj: a tensor, or any nesting of containers around tensors.
        device: where to; a `Device`, its name, a `torch.device`, or None for the best one here.
        non_blocking: queue each copy and return before it has ended. It helps when the tensor is
            pinned: the device then fetches it while Python goes on. Copies to the CPU and to MPS
            always block, because a queued one could read or give wrong data.

    Raises:
        ValueError: `device` does not name a kind of device.
        RuntimeError: the device is not in this machine.
    """
    target = as_torch_device(device)
    kind = kind_called(target.type)
    if kind.lazy:
        start_xla()  # without it torch has no such device
    return _walk(obj, _mover(target, non_blocking and kind.queues_copies))


def _walk(node: Any, move: Callable[[Any], Any]) -> Any:
    """Return a copy of `node` in which `move` has replaced everything that has a method `.to`."""
    kind = type(node)
    if kind in PLAIN:
        return node
    if kind is dict:
        return {key: _walk(part, move) for key, part in node.items()}
    if kind is list or kind is tuple:
        return kind([_walk(part, move) for part in node])
    if hasattr(kind, "to"):
        return move(node)
    if isinstance(node, tuple):
        parts = [_walk(part, move) for part in node]
        return kind._make(parts) if hasattr(kind, "_make") else kind(parts)
    if isinstance(node, dict | UserDict | list):
        result = copy.copy(node)
        for key, part in node.items() if isinstance(node, dict | UserDict) else enumerate(node):
            result[key] = _walk(part, move)
        return result
    if dataclasses.is_dataclass(node) and not isinstance(node, type):
        twin = copy.copy(node)
        for field in dataclasses.fields(node):  # object's own way, for frozen ones too
            object.__setattr__(twin, field.name, _walk(getattr(node, field.name), move))
        return twin
    return node


def _mover(target: torch.device, queue: bool) -> Callable[[Any], Any]:
    """Return a function that moves whatever has a method `.to`, each object once."""
    switches: dict[str, Any] = {"non_blocking": True} if queue else {}
    # id of an original: the original, so that its id stays taken, and its copy
    moved: dict[int, tuple[Any, Any]] = {}

    def move(leaf: Any) -> Any:
        if id(leaf) not in moved:
            if isinstance(leaf, torch.Tensor):
                result = leaf.to(target, **switches)
            else:
                result = leaf.to(target)
            if result is None:  # some move in place and return nothing
                result = leaf
            moved[id(leaf)] = leaf, result
        return moved[id(leaf)][1]

    return move
