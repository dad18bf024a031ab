"""Functions that make tensors, and generators of random numbers: on the device asked for."""

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
from course_tools.rehearsal.placement import (
    count_copy,
    fake_mode,
    is_fake,
    mark_of,
    put,
    real_device,
    simulated_device,
)
from course_tools.rehearsal.replacing import Replacement
from course_tools.rehearsal.world import CPU, World, current_world

#: methods that make a tensor beside another, unless a device is named
BESIDE: tuple[str, ...] = ("new", "new_tensor", "new_empty", "new_zeros", "new_ones", "new_full")
BESIDE += ("new_empty_strided",)
LIKE = [f"{name}_like" for name in ("empty", "zeros", "ones", "full", "rand", "randn", "randint")]
#: these take values from Python, NumPy or a tensor,
TAKE_VALUES = ("tensor", "as_tensor", "asarray")
#: and these share NumPy's memory
FROM_NUMPY = ("as_tensor", "asarray")


def replacements(world: World) -> Iterator[Replacement]:
    """Yield what is replaced of makers of tensors, and of generators."""
    yield from _makers()
    yield Replacement(torch, "Generator", AnyGenerator)
    try:
        torch.device(0)
    except RuntimeError:  # before PyTorch 2.9, and in a build for the CPU
        yield Replacement(torch, "device", device_of_numbers(world))


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

    def set_default_tensor_type(asked: Any) -> None:
        name = asked if isinstance(asked, str) else f"{asked.__module__}.{asked.__name__}"
        choose(f"torch.{name.rpartition('.')[2]}")
        torch.set_default_device("cuda" if name.startswith("torch.cuda.") else None)

    yield Replacement(torch, "set_default_tensor_type", set_default_tensor_type)


def run_as_asked(
    function: Callable[..., Any], args: Any, kwargs: Any, device: torch.device = CPU
) -> Any:
    """Run a function that makes a tensor because Python asked for it, and for which device."""
    thread = current_world().thread
    before, thread.making_on = thread.making_on, device
    try:
        return function(*args, **kwargs)
    finally:
        thread.making_on = before


def _made_on(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a maker of tensors that understands the simulated device."""
    positional = function.__name__ == "as_tensor"

    @functools.wraps(function)
    def make(*args: Any, **kwargs: Any) -> Any:
        if fake_mode() or is_traced(args, kwargs):
            return function(*args, **kwargs)
        world = current_world()
        if function.__name__ in TAKE_VALUES and args:
            _count_values_read(args[0])
        if positional and len(args) > 2:
            *args, kwargs["device"] = args  # type: ignore[assignment]
        asked = kwargs.get("device")
        if asked is None and kwargs.get("out") is None:
            copies = bool(_copied(function, args))
            asked = simulated_device(args[0]) if copies else _device.CURRENT_DEVICE
        if world.simulates(asked):
            return _made_on_gpu(world.device(asked), function, args, kwargs)  # type: ignore[arg-type]
        return _made_elsewhere(asked, function, args, kwargs)

    return make


def _count_values_read(data: Any) -> None:
    """Count the values of a GPU in lists that a tensor is made of: they are read one by one."""
    for each in data if isinstance(data, (list, tuple)) else ():
        if isinstance(each, (list, tuple)):
            _count_values_read(each)
        elif isinstance(each, Tensor) and simulated_device(each).type != "cpu":
            for _ in range(each.numel()):
                current_world().seen.add("wait: a value in a list is read", current_spot())


def _is_data(name: str, data: Any) -> bool:
    """Tell whether `rows.new_tensor` or `rows.new` is given values, not sizes or a tensor."""
    if isinstance(data, (Tensor, torch.Size)):
        return False
    sequence = isinstance(data, (list, tuple)) or hasattr(data, "__array__")
    return name == "new_tensor" or (name == "new" and sequence)


def _copied(function: Callable[..., Any], args: Any) -> list[Tensor]:
    """Return the tensor that torch.tensor or the like is to copy, or nothing."""
    return [
        each for each in args[:1] if isinstance(each, Tensor) and function.__name__ in TAKE_VALUES
    ]


def _made_on_gpu(
    device: torch.device, function: Callable[..., Any], args: Any, kwargs: dict[str, Any]
) -> Any:
    """Make a tensor on a simulated device."""
    kwargs["device"] = "cpu"
    kwargs.pop("pin_memory", None)
    if _copied(function, args):
        return _copied_to(device, function, args, kwargs)
    _refuse_what_cannot_fit(current_world(), device, function.__name__, args, kwargs)
    made = run_as_asked(function, args, kwargs, device)
    if function.__name__ in TAKE_VALUES:  # made on the CPU first, and copied
        count_copy(made, device, False)
    if function.__name__ in FROM_NUMPY:  # whose memory is not the GPU's
        made = run_as_asked(torch.clone, (made,), {})
    return put(made, device)


def _made_elsewhere(
    device: Any, function: Callable[..., Any], args: Any, kwargs: dict[str, Any]
) -> Any:
    """Make a tensor of the CPU, or of a device that is not simulated."""
    if device is not None and torch.device(device).type not in ("cpu", "meta"):
        return function(*args, **kwargs)
    first = args[0] if args and isinstance(args[0], Tensor) else None
    if first is not None and simulated_device(first).type != "cpu" and device is not None:
        args = (first.to(device), *args[1:])
    pinned = kwargs.pop("pin_memory", False)  # which is only noted
    made = run_as_asked(function, args, kwargs)
    if isinstance(made, Tensor) and mark_of(made) is None:
        put(made, CPU)
    return made.pin_memory() if pinned else made


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
        made = run_as_asked(function, (tensor, *args), kwargs, device)
        if args and _is_data(function.__name__, args[0]):
            _count_values_read(args[0])
            if device.type != "cpu":
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
