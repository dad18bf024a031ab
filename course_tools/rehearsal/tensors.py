"""What a program asks of tensors and of the functions that make them: on which device."""

import functools
import inspect
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor
from torch.fx import Proxy
from torch.utils import _device

from course_tools.rehearsal.lines import current_spot
from course_tools.rehearsal.operations import explained, fail
from course_tools.rehearsal.placement import (
    CPU,
    NO_FLOAT64,
    World,
    argument,
    count_copy,
    current_world,
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

TO_NUMPY = (
    "can't convert {} device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host "
    "memory first."
)
#: methods that make a tensor beside another, unless a device is named
BESIDE: tuple[str, ...] = ("new", "new_tensor", "new_empty", "new_zeros", "new_ones", "new_full")
BESIDE += ("new_empty_strided",)
LIKE = [f"{name}_like" for name in ("empty", "zeros", "ones", "full", "rand", "randn", "randint")]
KINDS = ("cpu", "cuda", "xpu", "mps")


class Generator(torch.Generator):
    """A generator of random numbers that knows the device it was asked for."""

    def __new__(cls, device: Any = "cpu") -> "Generator":
        """Make one of the CPU, which draws the same numbers."""
        world = current_world()
        if not world.simulates(device):
            plain: Any = torch._C.Generator(device=device)
            world.generators.pop(plain._cdata, None)  # whose address another one had
            return plain
        made: Any = super().__new__(cls, device="cpu")  # type: ignore[call-arg]
        # An operation is given another Python object for the same generator.
        made.rehearsed = world.generators[made._cdata] = world.device(device)
        return made

    @property
    def device(self) -> torch.device:  # type: ignore[override]
        """The device that it was made for."""
        return self.rehearsed

    rehearsed: torch.device = CPU


class _AnyGenerator(type):
    """Lets isinstance accept every generator under the name torch.Generator."""

    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, torch._C.Generator)

    def __call__(cls, device: Any = "cpu") -> Any:
        return Generator(device)


class AnyGenerator(metaclass=_AnyGenerator):
    """Stands in the place of torch.Generator."""


def device_of_numbers(world: World) -> type:
    """Return what stands for torch.device in a build that knows no GPU to give a number to."""
    plain = torch.device

    class AnyDevice(type):
        def __instancecheck__(cls, value: Any) -> bool:
            return isinstance(value, plain)

        def __call__(cls, *args: Any, **kwargs: Any) -> torch.device:
            if len(args) == 1 and isinstance(args[0], int):
                return plain(world.kind, args[0])
            return plain(*args, **kwargs)

    return AnyDevice("device", (), {"__module__": "torch", "__doc__": plain.__doc__})


def replacements(world: World) -> Iterator[Replacement]:
    """Yield what is replaced of tensors, of the functions that make them, and of generators."""
    yield from _questions()
    yield from _moves(world)
    yield from _copies(world)
    yield from _values(world)
    yield from _makers()
    yield from _compared_first()
    yield Replacement(torch.nn.functional, "one_hot", one_hot)
    yield Replacement(torch, "Generator", AnyGenerator)
    try:
        torch.device(0)
    except RuntimeError:  # before PyTorch 2.9, and in a build for the CPU
        yield Replacement(torch, "device", device_of_numbers(world))


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
    for kind in KINDS:
        yield Replacement(Tensor, f"is_{kind}", kind_is(kind))
    yield Replacement(Tensor, "get_device", get_device)
    yield Replacement(torch, "get_device", get_device)
    yield Replacement(Tensor, "is_pinned", is_pinned)


def _moves(world: World) -> Iterator[Replacement]:
    """Yield the methods that move a tensor."""
    plain: Any = Tensor.to
    change_type: Any = Tensor.type
    parse = torch._C._nn._parse_to

    def to(tensor: Tensor, *args: Any, **kwargs: Any) -> Tensor:
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
            return put(_run(torch.empty, (0,), {"dtype": tensor.dtype}), device)
        non_blocking = rest.pop("non_blocking", False)
        copied = plain(tensor, dtype or tensor.dtype, **rest)
        if device == simulated_device(copied):
            return copied
        return _with_parts_moved(copied, device, non_blocking)

    def cuda(tensor: Tensor, device: Any = None, non_blocking: bool = False, **kwargs: Any) -> Any:
        where = "cuda" if device is None else device
        return tensor.to(where, non_blocking=non_blocking, **kwargs)

    def xpu(tensor: Tensor, device: Any = None, non_blocking: bool = False, **kwargs: Any) -> Any:
        where = "xpu" if device is None else device
        return tensor.to(where, non_blocking=non_blocking, **kwargs)

    def cpu(tensor: Tensor, memory_format: Any = torch.preserve_format) -> Tensor:
        return tensor.to("cpu", memory_format=memory_format)

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

    def parse_to(*args: Any, **kwargs: Any) -> Any:
        if args and isinstance(args[0], int):  # Module.to(0): a CPU build knows no such device
            args = (world.device(args[0]), *args[1:])
        return parse(*args, **kwargs)

    for function in (to, cuda, xpu, cpu, type_as):
        yield Replacement(Tensor, function.__name__, function)
    yield Replacement(Tensor, "type", type_)
    yield Replacement(torch._C._nn, "_parse_to", parse_to)


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
        world.touch()
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


def _values(world: World) -> Iterator[Replacement]:
    """Yield the methods that hand a tensor's values to Python, to NumPy and to other libraries."""
    original = {
        name: getattr(Tensor, name) for name in ("numpy", "__array__", "tolist", "__dlpack__")
    }
    hand_out: Any = torch.utils.dlpack.to_dlpack
    show: Any = Tensor.__repr__

    def numpy(tensor: Tensor, *, force: bool = False) -> Any:
        device = simulated_device(tensor)
        if device.type == "cpu":
            return original["numpy"](tensor, force=force)
        if force:
            return original["numpy"](tensor.detach().cpu(), force=True)
        raise _left(TypeError(TO_NUMPY.format(device)), tensor, ".cpu() before .numpy()")

    def array(tensor: Tensor, *args: Any, **kwargs: Any) -> Any:
        device = simulated_device(tensor)
        if device.type != "cpu":
            raise _left(TypeError(TO_NUMPY.format(device)), tensor, ".cpu() before NumPy")
        return original["__array__"](tensor, *args, **kwargs)

    def tolist(tensor: Tensor) -> Any:
        if simulated_device(tensor).type != "cpu":
            world.saw("wait: .tolist()", current_spot())
        return original["tolist"](tensor)

    def data_ptr(tensor: Tensor) -> int:
        if simulated_device(tensor).type != "cpu":
            world.remark(
                "The address of a tensor was asked for (data_ptr, DLPack). What reads memory at "
                "that address, such as a kernel of another package, is not checked."
            )
        return torch._C.TensorBase.data_ptr(tensor)

    def dlpack(tensor: Tensor, *args: Any, **kwargs: Any) -> Any:
        data_ptr(tensor)
        return original["__dlpack__"](tensor, *args, **kwargs)

    def to_dlpack(tensor: Tensor) -> Any:
        data_ptr(tensor)
        return hand_out(tensor)

    def __repr__(tensor: Tensor, *, tensor_contents: Any = None) -> str:
        if simulated_device(tensor).type != "cpu" and not tensor.dim():
            world.saw("wait: printing", current_spot())  # of more values, .tolist() is counted
        return show(tensor, tensor_contents=tensor_contents)

    for function in (numpy, tolist, data_ptr, __repr__):
        yield Replacement(Tensor, function.__name__, function)
    yield Replacement(Tensor, "__array__", array)
    yield Replacement(Tensor, "__dlpack__", dlpack)
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
    """Yield the functions that compare devices before any operation runs: recurrent layers."""

    def checked(function: Callable[..., Any]) -> Callable[..., Any]:
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

    def split_checked(function: Callable[..., Any]) -> Callable[..., Any]:
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

    count: Any = torch.ctc_loss

    def ctc_loss(rows: Tensor, targets: Tensor, *lengths: Any, **kwargs: Any) -> Tensor:
        device, given = simulated_device(rows), list(lengths)  # lengths may come from anywhere
        for index, each in enumerate(given):
            given[index] = put(each.clone(), device) if isinstance(each, Tensor) else each
        return count(rows, targets, *given, **kwargs)

    yield Replacement(torch, "ctc_loss", ctc_loss)
    yield Replacement(torch, "tensor_split", split_checked(torch.tensor_split))
    yield Replacement(Tensor, "tensor_split", split_checked(Tensor.tensor_split))
    for name in ("lstm", "gru", "rnn_tanh", "rnn_relu"):
        yield Replacement(torch._VF, name, checked(getattr(torch._VF, name)))


plain_one_hot: Any = torch.nn.functional.one_hot


def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """Stand for one_hot, which reads values to check them on a CPU alone."""
    if fake_mode() or simulated_device(tensor).type == "cpu" or tensor.dtype != torch.int64:
        return plain_one_hot(tensor, num_classes)
    if num_classes == -1:
        num_classes = int(tensor.max()) + 1
    made = tensor.new_zeros((*tensor.shape, num_classes))
    return made.scatter_(-1, tensor.unsqueeze(-1), 1)


def _makers() -> Iterator[Replacement]:
    """Yield the functions that make tensors on the device they are asked for."""
    makers: Any = _device._device_constructors()
    for function in makers:
        owner = inspect.getmodule(function) or torch
        name = function.__name__
        for module in (torch, torch.fft, torch.nested, owner):
            made: Any = getattr(module, name, None)
            if made is function:
                yield Replacement(module, name, _made_on(made))
                break
    for name in LIKE:
        yield Replacement(torch, name, _made_beside(getattr(torch, name)))
    for name in BESIDE:
        yield Replacement(Tensor, name, _made_beside(getattr(Tensor, name)))
    yield Replacement(torch, "from_numpy", _made_here(torch.from_numpy))
    yield Replacement(torch, "from_dlpack", _made_here(torch.from_dlpack))
    yield Replacement(torch, "normal", _made_on(torch.normal))
    choose: Any = torch.set_default_tensor_type

    def set_default_tensor_type(kind: Any) -> None:
        name = kind if isinstance(kind, str) else f"{kind.__module__}.{kind.__name__}"
        choose(f"torch.{name.rpartition('.')[2]}")
        torch.set_default_device("cuda" if name.startswith("torch.cuda.") else None)

    yield Replacement(torch, "set_default_tensor_type", set_default_tensor_type)


def _run(function: Callable[..., Any], args: Any, kwargs: Any, device: torch.device = CPU) -> Any:
    """Run a function that makes a tensor because Python asked for it, and for which device."""
    thread = current_world().thread
    before, thread.asked = thread.asked, device
    try:
        return function(*args, **kwargs)
    finally:
        thread.asked = before


def _made_on(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a maker of tensors that understands the simulated device."""
    positional = function.__name__ == "as_tensor"

    @functools.wraps(function)
    def make(*args: Any, **kwargs: Any) -> Any:
        if fake_mode() or is_traced(args, kwargs):
            return function(*args, **kwargs)
        world = current_world()
        if function.__name__ in COPIES and args:
            _count_values_read(args[0])
        if positional and len(args) > 2:
            *args, kwargs["device"] = args  # type: ignore[assignment]
        copied = args[0] if args and isinstance(args[0], Tensor) else None
        copies = copied is not None and function.__name__ in COPIES
        asked = kwargs.get("device")
        if asked is None and kwargs.get("out") is None:
            asked = simulated_device(args[0]) if copies else _device.CURRENT_DEVICE
        if not world.simulates(asked):
            if asked is not None and torch.device(asked).type not in ("cpu", "meta"):
                return function(*args, **kwargs)
            if copied is not None and simulated_device(copied).type != "cpu" and asked is not None:
                args = (copied.to(asked), *args[1:])
            return _unpinned(function, args, kwargs)
        device = world.device(asked)  # type: ignore[arg-type]
        kwargs["device"] = "cpu"
        kwargs.pop("pin_memory", None)
        if copies:
            return _copied_to(device, function, args, kwargs)
        _refuse_what_cannot_fit(world, device, function.__name__, args, kwargs)
        out = _run(function, args, kwargs, device)
        if function.__name__ in COPIES:
            count_copy(out, device, False)
        if function.__name__ in COPIES[1:]:  # NumPy's memory is not the GPU's
            out = _run(torch.clone, (out,), {})
        return put(out, device)

    return make


def _copied_to(device: torch.device, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """Return what torch.tensor and the like make of a tensor, on a simulated device."""
    data, *others = args
    moved = data.to(device)
    if moved is not data and function.__name__ != "tensor":
        return moved if kwargs.get("dtype") is None else moved.to(kwargs["dtype"])
    with torch._C._DisableTorchDispatch(), warnings.catch_warnings(record=True) as told:
        made = function(moved, *others, **kwargs)
    for each in told:
        warnings.warn(each.message, stacklevel=3)
    return put(made, device)


COPIES = ("tensor", "as_tensor", "asarray")


def _count_values_read(data: Any) -> None:
    """Count the values of a GPU in lists that a tensor is made of: they are read one by one."""
    for each in data if isinstance(data, (list, tuple)) else ():
        if isinstance(each, (list, tuple)):
            _count_values_read(each)
        elif isinstance(each, Tensor) and simulated_device(each).type != "cpu":
            for _ in range(each.numel()):
                current_world().saw("wait: a value in a list is read", current_spot())


def is_data(value: Any) -> bool:
    """Tell whether a tensor is made of values, by `rows.new`, and not of sizes or a tensor."""
    if isinstance(value, (Tensor, torch.Size)):
        return False
    return isinstance(value, (list, tuple)) or hasattr(value, "__array__")


def _refuse_what_cannot_fit(
    world: World, device: torch.device, name: str, args: Any, kwargs: Any
) -> None:
    """Refuse a tensor that is too large before the CPU's memory is filled with it."""
    sizes = kwargs.get("size", args[0] if len(args) == 1 else args)
    sizes = sizes if isinstance(sizes, (tuple, list)) else (sizes,)
    plain = name in ("empty", "zeros", "ones", "rand", "randn", "full")
    sizes = args[0] if name == "full" and args else sizes
    if plain and all(isinstance(each, int) for each in sizes):
        dtype = kwargs.get("dtype") or torch.get_default_dtype()
        world.cards[device.index].check(torch.Size(sizes).numel() * dtype.itemsize)


def _unpinned(function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """Make a tensor of the CPU; pinned memory is only noted."""
    pinned = kwargs.pop("pin_memory", False)
    made = _run(function, args, kwargs)
    if isinstance(made, Tensor) and mark_of(made) is None:
        put(made, CPU)
    return made.pin_memory() if pinned else made


def _made_beside(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a maker of tensors that puts them beside the first argument, if none is named."""

    @functools.wraps(function)
    def make(tensor: Tensor, *args: Any, **kwargs: Any) -> Any:
        if fake_mode() or is_traced((tensor, *args), kwargs):
            return function(tensor, *args, **kwargs)
        asked = kwargs.pop("device", None)
        kwargs.pop("pin_memory", None)
        if asked is not None and not current_world().simulates(asked) and is_meta(asked):
            return function(tensor, *args, device=asked, **kwargs)
        if real_device(tensor).type != "cpu" or is_fake(type(tensor)):
            return function(tensor, *args, device=asked, **kwargs)
        device = simulated_device(tensor) if asked is None else current_world().device(asked)
        if args and isinstance(args[0], Tensor) and simulated_device(args[0]) != device:
            args = (args[0].to(device), *args[1:])  # new_tensor copies a tensor
        made = _run(function, (tensor, *args), kwargs, device)
        name, data = function.__name__, args[0] if args else None
        of_values = name == "new_tensor" and not isinstance(data, Tensor)
        if device.type != "cpu" and (of_values or (name == "new" and is_data(data))):
            _count_values_read(data)
            count_copy(made, device, False)
        return put(made, device)

    return make


def is_traced(args: Any, kwargs: dict[str, Any]) -> bool:
    """Tell whether torch.fx is writing down what a program does, and nothing has values."""
    return any(isinstance(each, Proxy) for each in (*args, *kwargs.values()))


def is_meta(device: Any) -> bool:
    """Tell whether tensors on a device have no values."""
    return torch.device(device).type == "meta"


def _made_here(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a maker of tensors of the CPU whose line is kept."""

    @functools.wraps(function)
    def make(*args: Any) -> Tensor:
        made = function(*args)
        device = simulated_device(args[0]) if isinstance(args[0], Tensor) else CPU
        return made if mark_of(made) is not None else put(made, device)

    return make
