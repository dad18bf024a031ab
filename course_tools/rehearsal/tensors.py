"""What a program asks of tensors: where they are, to move them, and for their values."""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from course_tools.rehearsal.lines import current_spot
from course_tools.rehearsal.makers import run_as_asked
from course_tools.rehearsal.operations import explained, fail
from course_tools.rehearsal.placement import (
    NO_FLOAT64,
    argument,
    fake_mode,
    is_fake,
    mark_of,
    move,
    parts_of,
    put,
    real_device,
    simulated_device,
)
from course_tools.rehearsal.replacing import Replacement, everywhere
from course_tools.rehearsal.rules import type_name
from course_tools.rehearsal.world import CPU, World

TO_NUMPY = (
    "can't convert {} device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host "
    "memory first."
)
#: what a tensor says of where it is
QUESTIONS = ("is_cpu", "is_cuda", "is_xpu", "is_mps")


def replacements(world: World) -> Iterator[Replacement]:
    """Yield what is replaced of tensors, and of functions that compare devices first."""
    yield from _questions()
    yield from _moves(world)
    yield from _types()
    yield from _copies(world)
    yield from _to_numpy()
    yield from _to_python(world)
    yield from _addresses(world)
    yield from _compared_first()
    yield Replacement(torch.nn.functional, "one_hot", one_hot)


def _questions() -> Iterator[Replacement]:
    """Yield the attributes and methods that say where a tensor is."""

    def get_device(tensor: Tensor) -> int:
        device = simulated_device(tensor)
        return -1 if device.type == "cpu" else device.index or 0

    def is_pinned(tensor: Tensor, device: Any = None) -> bool:
        mark = mark_of(tensor)
        return mark is not None and mark.pinned

    def kind_is(kind: str) -> property:
        return property(lambda tensor: simulated_device(tensor).type == kind)

    yield Replacement(Tensor, "device", property(simulated_device))
    for name in QUESTIONS:
        yield Replacement(Tensor, name, kind_is(name.removeprefix("is_")))
    yield Replacement(Tensor, "get_device", get_device)
    yield Replacement(torch, "get_device", get_device)
    yield Replacement(Tensor, "is_pinned", is_pinned)


def _moves(world: World) -> Iterator[Replacement]:
    """Yield the methods that move a tensor."""
    plain: Any = Tensor.to
    parse = torch._C._nn._parse_to

    def to(tensor: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        return _moved(world, plain, tensor, args, kwargs)

    def cuda(tensor: Tensor, device: Any = None, non_blocking: bool = False, **kwargs: Any) -> Any:
        target = "cuda" if device is None else device
        return tensor.to(target, non_blocking=non_blocking, **kwargs)

    def xpu(tensor: Tensor, device: Any = None, non_blocking: bool = False, **kwargs: Any) -> Any:
        target = "xpu" if device is None else device
        return tensor.to(target, non_blocking=non_blocking, **kwargs)

    def cpu(tensor: Tensor, memory_format: Any = torch.preserve_format) -> Tensor:
        return tensor.to("cpu", memory_format=memory_format)

    def parse_to(*args: Any, **kwargs: Any) -> Any:
        if args and isinstance(args[0], int):  # Module.to(0): a CPU build knows no such device
            args = (world.device(args[0]), *args[1:])
        return parse(*args, **kwargs)

    for function in (to, cuda, xpu, cpu):
        yield Replacement(Tensor, function.__name__, function)
    yield Replacement(torch._C._nn, "_parse_to", parse_to)


def _types() -> Iterator[Replacement]:
    """Yield the methods that change a tensor's type, whose names say a device too."""
    change_type: Any = Tensor.type

    def type_(tensor: Tensor, dtype: Any = None, non_blocking: bool = False) -> Any:
        if dtype is None:
            return type_name(tensor, simulated_device(tensor))
        if isinstance(dtype, torch.dtype):
            return change_type(tensor, dtype, non_blocking)
        name = dtype if isinstance(dtype, str) else f"{dtype.__module__}.{dtype.__name__}"
        kind = name.split(".")[1] if name.count(".") == 2 else "cpu"
        made = change_type(tensor, f"torch.{name.rpartition('.')[2]}")
        return made.to(kind, non_blocking=non_blocking)

    def type_as(tensor: Tensor, other: Tensor) -> Tensor:
        return tensor.to(other)

    yield Replacement(Tensor, "type", type_)
    yield Replacement(Tensor, "type_as", type_as)


def _moved(
    world: World, plain: Callable[..., Tensor], tensor: Tensor, args: Any, kwargs: dict[str, Any]
) -> Tensor:
    """Return what Tensor.to returns; `plain` is PyTorch's own."""
    if is_fake(type(tensor)) or fake_mode():
        return plain(tensor, *args, **kwargs)
    device, dtype, rest = _asked_of_to(tensor, args, kwargs)
    if real_device(tensor).type == "meta" and world.simulates(device):
        return plain(tensor, "cpu")  # raises: it has no values
    if device is None or real_device(tensor).type != "cpu":
        return plain(tensor, *args, **kwargs)
    if not world.simulates(device) and torch.device(device).type != "cpu":
        return plain(tensor, *args, **kwargs)
    device = world.device(device)
    if device.type == "mps" and (dtype or tensor.dtype) == torch.float64:
        raise TypeError(NO_FLOAT64)
    if torch.nn.parameter.is_lazy(tensor):  # it has no values yet
        return put(run_as_asked(torch.empty, (0,), {"dtype": tensor.dtype}), device)
    non_blocking = rest.pop("non_blocking", False)
    copied = plain(tensor, dtype or tensor.dtype, **rest)
    if device == simulated_device(copied):
        return copied
    return _with_parts_moved(copied, device, non_blocking)


def _copies(world: World) -> Iterator[Replacement]:
    """Yield the methods that copy a tensor beside itself."""
    copy: Any = Tensor.__deepcopy__

    def pin_memory(tensor: Tensor, device: Any = None) -> Tensor:
        here = simulated_device(tensor)
        if here.type != "cpu":
            kind = type_name(tensor, here)
            message = f"cannot pin '{kind}' only dense CPU tensors can be pinned"
            raise _left(RuntimeError(message), tensor, "pinning before the move, or not at all")
        mark = mark_of(tensor)
        if mark is not None and mark.pinned:
            return tensor
        world.initialize()
        with torch._C._DisableTorchDispatch():
            copied = tensor.detach().clone()
        put(copied, CPU)
        pinned = mark_of(copied)
        if pinned is not None:
            pinned.pinned = True
        return copied

    def deepcopy(tensor: Tensor, memo: dict[int, Any]) -> Tensor:
        known = id(tensor) in memo
        copied = copy(tensor, memo)
        if not known and simulated_device(tensor) != simulated_device(copied):
            put(copied, simulated_device(tensor))
        return copied

    yield Replacement(Tensor, "pin_memory", pin_memory)
    yield Replacement(Tensor, "__deepcopy__", deepcopy)


def _to_numpy() -> Iterator[Replacement]:
    """Yield the methods that make an array, which a GPU's tensor refuses."""
    plain_numpy: Any = Tensor.numpy
    plain_array: Any = Tensor.__array__

    def numpy(tensor: Tensor, *, force: bool = False) -> Any:
        device = simulated_device(tensor)
        if device.type == "cpu":
            return plain_numpy(tensor, force=force)
        if force:
            return plain_numpy(tensor.detach().cpu(), force=True)
        raise _left(TypeError(TO_NUMPY.format(device)), tensor, ".cpu() before .numpy()")

    def __array__(tensor: Tensor, *args: Any, **kwargs: Any) -> Any:
        device = simulated_device(tensor)
        if device.type != "cpu":
            raise _left(TypeError(TO_NUMPY.format(device)), tensor, ".cpu() before NumPy")
        return plain_array(tensor, *args, **kwargs)

    for function in (numpy, __array__):
        yield Replacement(Tensor, function.__name__, function)


def _to_python(world: World) -> Iterator[Replacement]:
    """Yield the methods that read values, for which the host waits."""
    plain_tolist: Any = Tensor.tolist
    show: Any = Tensor.__repr__

    def tolist(tensor: Tensor) -> Any:
        if simulated_device(tensor).type != "cpu":
            world.seen.add("wait: .tolist()", current_spot())
        return plain_tolist(tensor)

    def __repr__(tensor: Tensor, *, tensor_contents: Any = None) -> str:
        if simulated_device(tensor).type != "cpu" and not tensor.dim():
            world.seen.add("wait: printing", current_spot())  # of more values, .tolist() is counted
        return show(tensor, tensor_contents=tensor_contents)

    for function in (tolist, __repr__):
        yield Replacement(Tensor, function.__name__, function)


def _addresses(world: World) -> Iterator[Replacement]:
    """Yield the methods that tell others where in memory a tensor is."""
    plain_dlpack: Any = Tensor.__dlpack__
    hand_out: Any = torch.utils.dlpack.to_dlpack

    def data_ptr(tensor: Tensor) -> int:
        if simulated_device(tensor).type != "cpu":
            world.seen.remark(
                "The address of a tensor was asked for (data_ptr, DLPack). What reads memory at "
                "that address, such as a kernel of another package, is not checked."
            )
        return torch._C.TensorBase.data_ptr(tensor)

    def __dlpack__(tensor: Tensor, *args: Any, **kwargs: Any) -> Any:
        data_ptr(tensor)
        return plain_dlpack(tensor, *args, **kwargs)

    def to_dlpack(tensor: Tensor) -> Any:
        data_ptr(tensor)
        return hand_out(tensor)

    for function in (data_ptr, __dlpack__):
        yield Replacement(Tensor, function.__name__, function)
    yield from everywhere(torch.utils.dlpack, {"to_dlpack": to_dlpack}, "torch")


def _asked_of_to(tensor: Tensor, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return device, dtype and what else was asked of Tensor.to, in any of its three forms."""
    rest = dict(kwargs)
    device, dtype = rest.pop("device", None), rest.pop("dtype", None)
    other = rest.pop("other", None)
    values = list(args)
    first = values[0] if values else None
    if isinstance(first, Tensor):
        other, values = first, values[1:]
    elif isinstance(first, torch.dtype):
        dtype, values = first, values[1:]
    elif values:
        device, values = first, values[1:]
        if values and (values[0] is None or isinstance(values[0], torch.dtype)):
            dtype, values = values[0] or dtype, values[1:]
    if other is not None:
        device, dtype = simulated_device(other), other.dtype
    rest |= dict(zip(("non_blocking", "copy", "memory_format"), values, strict=False))
    return device, dtype, rest


def _with_parts_moved(tensor: Tensor, device: torch.device, non_blocking: bool) -> Tensor:
    """Return a tensor on a device; of one that wraps others, these are moved."""
    if not parts_of(tensor) or torch._C._functorch.is_functorch_wrapped_tensor(tensor):
        return move(tensor, device, non_blocking)
    names, context = tensor.__tensor_flatten__()  # type: ignore[attr-defined]
    parts = {name: getattr(tensor, name).to(device) for name in names}
    unflatten = type(tensor).__tensor_unflatten__  # type: ignore[attr-defined]
    return unflatten(parts, context, tensor.shape, tensor.stride())


def _left(error: Exception, tensor: Tensor, fix: str) -> Exception:
    """Return an error with a note on the tensor and the fix."""
    note = explained([argument("self", tensor)])
    error.add_note("\n".join([*note, f"rehearsal: the fix is {fix}"]))
    return error


def _compared_first() -> Iterator[Replacement]:
    """Yield the functions that compare devices before any operation runs."""
    yield Replacement(torch, "ctc_loss", _with_lengths_from_anywhere(torch.ctc_loss))
    yield Replacement(torch, "tensor_split", _with_indices_of_the_cpu(torch.tensor_split))
    yield Replacement(Tensor, "tensor_split", _with_indices_of_the_cpu(Tensor.tensor_split))
    for name in ("lstm", "gru", "rnn_tanh", "rnn_relu"):
        yield Replacement(torch._VF, name, _with_one_device(getattr(torch._VF, name)))


def _with_one_device(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a recurrent layer that wants its rows, state and weights on one device."""

    def layer(rows: Tensor, *args: Any) -> Any:
        packed = isinstance(args[0], Tensor) and isinstance(args[2], (list, tuple))
        hidden, weights = args[1:3] if packed else args[0:2]
        here = simulated_device(rows)
        for what, tensors in (("hidden", hidden), ("parameter", weights)):
            for tensor in [tensors] if isinstance(tensors, Tensor) else tensors:
                there = simulated_device(tensor)
                if there != here:
                    fail(
                        f"Input and {what} tensors are not at the same device, found input "
                        f"tensor at {here} and {what} tensor at {there}",
                        [argument(what, tensor), argument("input", rows)],
                    )
        return function(rows, *args)

    return layer


def _with_indices_of_the_cpu(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a tensor_split that wants the indices on the CPU."""

    def tensor_split(rows: Tensor, *args: Any, **kwargs: Any) -> Any:
        for each in (*args, *kwargs.values()):
            if isinstance(each, Tensor) and simulated_device(each).type != "cpu":
                fail(
                    "tensor_split expected tensor_indices_or_sections to be on cpu, but it's "
                    f"on {simulated_device(each)}",
                    [argument("tensor_indices_or_sections", each)],
                )
        return function(rows, *args, **kwargs)

    return tensor_split


def _with_lengths_from_anywhere(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Return a ctc_loss that takes lengths of any device."""

    def ctc_loss(rows: Tensor, targets: Tensor, *lengths: Any, **kwargs: Any) -> Tensor:
        device, given = simulated_device(rows), list(lengths)
        for index, each in enumerate(given):
            given[index] = put(each.clone(), device) if isinstance(each, Tensor) else each
        return function(rows, targets, *given, **kwargs)

    return ctc_loss


plain_one_hot: Any = torch.nn.functional.one_hot


def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """Stand for one_hot, which reads values to check them on a CPU alone."""
    if fake_mode() or simulated_device(tensor).type == "cpu" or tensor.dtype != torch.int64:
        return plain_one_hot(tensor, num_classes)
    if num_classes == -1:
        num_classes = int(tensor.max()) + 1
    made = tensor.new_zeros((*tensor.shape, num_classes))
    return made.scatter_(-1, tensor.unsqueeze(-1), 1)
