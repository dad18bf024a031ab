"""Where each tensor would be: a mark on its storage, which views share and which dies with it."""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from course_tools.rehearsal.lines import Spot, current_spot
from course_tools.rehearsal.memory import SimulatedGpu
from course_tools.rehearsal.world import State, World, current_world


class Mark:
    """Where a storage would be, and the line that made it."""

    __slots__ = ("card", "device", "kept", "made_by", "pinned", "size_bytes", "spot", "world")

    def __init__(self, world: World, device: torch.device, storage: Any, spot: Spot) -> None:
        self.card: SimulatedGpu | None = None
        self.world = world
        self.device = device
        self.size_bytes = storage.nbytes()
        self.spot = spot
        self.pinned = False
        self.made_by: tuple[int, int] | None = None  # the call in which C++ made it, unasked
        self.kept = False  # C++ made it unasked, and keeps it for later calls
        if device.type == world.kind:
            card = world.cards[device.index]
            card.take(self.size_bytes, spot)
            self.card = card
        storage.rehearsed = Tie(self, storage._cdata)

    def leave(self) -> None:
        """Count the memory out."""
        if self.card is not None:
            self.card.free(self.size_bytes, self.spot)
            self.card = None


class Tie:
    """Ties a mark to a storage, and dies with it. Nothing else may hold one: the address is bare.

    Python's collector of cycles can empty the Python side of a storage that still lives in C++.
    Then the storage is in use beyond that side, and gets its mark back.
    """

    __slots__ = ("address", "mark")

    def __init__(self, mark: Mark | None, address: int) -> None:
        self.mark = mark
        self.address = address

    def __del__(self) -> None:
        mark = self.mark
        if mark is None:
            return
        if mark.world is not State.world or uses(self.address) < 2:
            mark.leave()
            return
        storage: Any = torch.UntypedStorage._new_with_weak_ptr(self.address)
        if mark_in(storage) in (mark, None):
            storage.rehearsed = Tie(mark, self.address)
            RESCUED.append(storage)  # until the next operation: the collector is at work
        else:
            mark.leave()  # another mark has taken its place


uses = torch._C._storage_Use_Count  # type: ignore[attr-defined]
UNTIED = Tie(None, 0)
RESCUED: list[Any] = []


def mark_in(storage: Any) -> Mark | None:
    """Return the mark of a storage."""
    return storage.__dict__.get("rehearsed", UNTIED).mark


def is_fake(cls: type) -> bool:
    """Tell whether a class of tensors has shapes and no values."""
    return cls.__name__ == "FakeTensor"


def fake_mode() -> bool:
    """Tell whether a FakeTensorMode is on, which has devices of its own."""
    return torch._C._get_dispatch_mode(FAKE) is not None


FAKE = torch._C._TorchDispatchModeKey.FAKE  # type: ignore[attr-defined]
real_device = torch._C.TensorBase.device.__get__  # type: ignore[attr-defined]


def plain_parts(tensor: Tensor) -> tuple[Tensor, ...]:
    """Return the tensor itself, or the values and indices of a sparse one."""
    if tensor.layout == torch.sparse_coo:
        return tensor._values(), tensor._indices()
    if tensor.layout in (torch.sparse_csr, torch.sparse_bsr):
        return tensor.values(), tensor.crow_indices(), tensor.col_indices()
    if tensor.layout in (torch.sparse_csc, torch.sparse_bsc):
        return tensor.values(), tensor.ccol_indices(), tensor.row_indices()
    return (tensor,) if tensor.layout == torch.strided else ()


def storages(tensor: Tensor) -> list[Any]:
    """Return the storages of a tensor: one, or those of the parts of a sparse one."""
    return [part.untyped_storage() for part in plain_parts(tensor)]


def parts_of(tensor: Tensor) -> list[Tensor]:
    """Return the plain tensors inside one that wraps others (a DTensor, one of vmap)."""
    functorch = torch._C._functorch
    if functorch.is_functorch_wrapped_tensor(tensor):
        return [functorch.get_unwrapped(tensor)]
    if not hasattr(type(tensor), "__tensor_flatten__"):
        return []
    names = tensor.__tensor_flatten__()[0]  # type: ignore[attr-defined]
    return [part for name in names if isinstance(part := getattr(tensor, name), Tensor)]


def mark_of(tensor: Tensor) -> Mark | None:
    """Return the mark of a tensor's storage, or None if this rehearsal has not seen it."""
    if type(tensor) is not Tensor and type(tensor) is not torch.nn.Parameter:
        with torch._C.DisableTorchFunctionSubclass():
            return _mark_of(tensor)
    return _mark_of(tensor)


def _mark_of(tensor: Tensor) -> Mark | None:
    try:
        mark = tensor.untyped_storage().__dict__.get("rehearsed", UNTIED).mark
    except (NotImplementedError, RuntimeError):  # sparse, or it wraps others
        with torch._C._DisableTorchDispatch():
            for part in parts_of(tensor):
                return mark_of(part)
            mark = next((mark_in(each) for each in storages(tensor)), None)
    return mark if mark is not None and mark.world is State.world else None


def simulated_device(tensor: Tensor) -> torch.device:
    """Return the device that a tensor would be on."""
    mark = mark_of(tensor)
    if mark is not None:
        return mark.device
    for part in parts_of(tensor) if type(tensor) is not Tensor else []:
        return simulated_device(part)
    return real_device(tensor)


class Argument(NamedTuple):
    """A tensor that an operation was given, by which name, and where it is."""

    name: str
    tensor: Tensor
    device: torch.device


def argument(name: str, tensor: Tensor) -> Argument:
    """Return a tensor under the name by which an operation was given it."""
    return Argument(name, tensor, simulated_device(tensor))


def put(tensor: Tensor, device: torch.device, spot: Spot | None = None) -> Tensor:
    """Say that a tensor is on a device from now on; nothing is copied."""
    if real_device(tensor).type != "cpu" or is_fake(type(tensor)):
        return tensor
    world = current_world()
    spot = spot or current_spot()
    with torch._C._DisableTorchDispatch():
        parts = parts_of(tensor)
        for part in parts:
            put(part, device, spot)
        if parts:
            return tensor
        with torch._C.DisableTorchFunctionSubclass():
            found = storages(tensor)
    if device.type == world.kind:
        world.initialize()
        if world.kind == "mps" and tensor.dtype == torch.float64:
            raise TypeError(NO_FLOAT64)
    for storage in found:
        old = mark_in(storage)
        if old is None or old.world is not world or old.device != device:
            if old is not None:
                old.leave()  # before the new one takes memory
            Mark(world, device, storage, spot)
    return tensor


NO_FLOAT64 = (
    "Cannot convert a MPS Tensor to float64 dtype as the MPS framework doesn't support float64. "
    "Please use float32 instead."
)


class Move(torch.autograd.Function):
    """A copy from one device to another, whose gradient comes back."""

    generate_vmap_rule = True

    @staticmethod
    def forward(tensor: Tensor, device: torch.device) -> Tensor:
        """Copy, and mark the copy."""
        with torch._C._DisableTorchDispatch():
            out = tensor.detach().clone()
        return put(out, device)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        """Keep where the tensor came from."""
        ctx.back = simulated_device(inputs[0])

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        """Copy the gradient back."""
        return move(gradients[0], ctx.back), None


def size_of(tensor: Tensor) -> int:
    """Return the bytes that a copy of a tensor moves: of a sparse one, its values and indices."""
    with torch._C._DisableTorchDispatch():
        return sum(part.numel() * part.element_size() for part in plain_parts(tensor))


def move(tensor: Tensor, device: torch.device, non_blocking: bool = False) -> Tensor:
    """Return a tensor on a device: itself if it is there, or a copy, which is counted."""
    source = simulated_device(tensor)
    if source == device:
        return tensor
    if device.type == current_world().kind:
        current_world().cards[device.index].check(size_of(tensor))
    count_copy(tensor, device, non_blocking)
    return Move.apply(tensor, device)


def count_copy(tensor: Tensor, device: torch.device, non_blocking: bool) -> None:
    """Count a copy to another device, and whether the program waits for it."""
    world, spot = current_world(), current_spot()
    source, size = simulated_device(tensor), size_of(tensor)
    if not size:
        return  # PyTorch copies nothing
    if source.type == "cpu":
        mark = mark_of(tensor)
        pinned = mark is not None and mark.pinned
        world.seen.add(f"to the GPU, from {'pinned' if pinned else 'pageable'} memory", spot, size)
        if not non_blocking:  # PyTorch waits for the stream, whatever memory it copies from
            world.seen.add("wait: copy to the GPU", spot)
    elif device.type == "cpu":
        world.seen.add("to the CPU", spot, size)
        if not non_blocking:
            world.seen.add("wait: copy to the CPU", spot)
    else:
        world.seen.add("from GPU to GPU", spot, size)
