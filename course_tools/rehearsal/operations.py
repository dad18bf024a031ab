"""Every operation, watched: where its tensors are, whether the device accepts that, what it is."""

from types import FrameType
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from course_tools.rehearsal import rules
from course_tools.rehearsal.lines import describe, frame_at, name_of, spot
from course_tools.rehearsal.placement import (
    CPU,
    NO_FLOAT64,
    RESCUED,
    Argument,
    Mark,
    State,
    World,
    argument,
    count_copy,
    fake_mode,
    is_fake,
    mark_in,
    mark_of,
    move,
    place_of,
    put,
    real_device,
)

#: folders of torch whose C++ code keeps tensors that Python never asked for: buckets of gradients
KEEPERS = ("/nn/parallel/", "/distributed/")


class Watch(TorchDispatchMode):
    """Sees each operation of a thread, forward and backward, before it runs on the CPU."""

    supports_higher_order_operators = True

    def __init__(self, running: World) -> None:
        super().__init__()
        self.running = running

    def __enter__(self) -> "Watch":
        """Watch the thread that enters."""
        self.running.thread.watched = True
        super().__enter__()
        return self

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Check the devices, run the operation on the CPU, and mark its results."""
        kwargs = kwargs or {}
        if self.passes(func, types):
            return func(*args, **kwargs)
        if any(wraps_others(each) for each in types):
            return NotImplemented  # a DTensor: the operations on its parts come back here
        running = self.running
        running.operations += 1
        RESCUED.clear()
        rule = rules.rule_of(func)
        asked = None
        if running.simulates(kwargs.get("device")):
            asked = running.device(kwargs["device"])
            kwargs = {**kwargs, "device": CPU}
        frame = frame_at(1)
        call = (id(frame), frame.f_lasti)
        tensors = given_tensors(args, kwargs)
        device = self.device_of(func, rule, tensors, args, kwargs, call) if tensors else CPU
        where = device if tensors else asked or running.thread.asked or CPU
        if problem := rules.check_generator(kwargs.get("generator"), where):
            raise RuntimeError(problem)
        place = spot(2)
        self.use(device, rule, tensors, args, place)
        out = run(func, rule.slow, args, kwargs)
        if rule.foreign and tensors:
            running.remark(
                f"The operation {rule.name} is not PyTorch's: its kernel for the CPU ran, and what "
                "its kernel for a GPU does was not looked at."
            )
        if asked is not None:
            for each in results(out):
                put(each, asked, place)
        self.mark(out, rule, asked or device, place, call, tensors)
        return out

    def passes(self, func: Any, types: Any) -> bool:
        """Tell whether an operation is none of this rehearsal's."""
        fake = fake_mode() or any(is_fake(each) for each in types)
        if fake or State.world is not self.running:
            return True
        return not isinstance(func, torch._ops.OpOverload)  # it runs others, not seen here

    def use(
        self,
        device: torch.device,
        rule: rules.Rule,
        tensors: list[Tensor],
        args: tuple[Any, ...],
        place: Any,
    ) -> None:
        """Use a device for an operation, and count what that means for the program."""
        running = self.running
        if device.type == running.kind:
            running.touch()
            running.on_gpu += 1
            if device.type == "cuda":
                rules.check_kernel(rule, tensors)
            if rule.waits:
                running.saw(f"wait: {rule.waits}", place)
            elif rule.indices is not None and any(is_mask(each) for each in args[1]):
                running.saw("wait: nonzero or a boolean mask", place)
            return
        of_values = bool(tensors) and not rule.anywhere and tensors[0].dim() > 0
        if device.type == "cpu" and running.started and of_values:
            running.saw("on the CPU", place)

    def device_of(
        self,
        func: Any,
        rule: rules.Rule,
        tensors: list[Tensor],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        call: Any,
    ) -> torch.device:
        """Return the device of an operation, or raise what PyTorch raises on the real one."""
        first = place_of(tensors[0])
        if rule.anywhere:
            if rule.name == "aten::set_":
                check_storages(tensors)
            non_blocking = kwargs.get("non_blocking", args[2] if len(args) > 2 else False)
            self.copy_between(rule, tensors, non_blocking is True, call)
            return first
        if rule.lengths is not None:
            problem = rules.check_lengths(args[rule.lengths])
            if problem:
                fail(problem, [argument("lengths", args[rule.lengths])])
            return first
        if rule.exchange:
            return self.exchanged(tensors)
        if rule.foreach:
            return self.foreach(func, rule, args, kwargs, call)
        if rule.indices is not None:
            indices = args[rule.indices]
            problem = rules.check_indices(indices, first)
            if problem:
                self.adopt(indices, first, call)
                problem = rules.check_indices(indices, first)
            if problem:
                fail(problem, [argument("self", tensors[0])])
            values = given_tensors(args[rule.indices + 1 :], kwargs)
            single = next((value for value in values if not value.dim()), None)
            if first.type == "cpu" and single is not None and place_of(single).type != "cpu":
                count_copy(single, first, False)  # PyTorch copies such a value itself
                return first
            tensors = [tensors[0], *values]
        return self.one_device(func, rule, tensors, args, kwargs, call)

    def one_device(
        self,
        func: Any,
        rule: rules.Rule,
        tensors: list[Tensor],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        call: Any,
    ) -> torch.device:
        """Return the one device of some tensors, or raise."""
        places = [(each, place_of(each)) for each in tensors]
        device = rules.common_device(places, rule.scalars)
        if device is None:
            gpu = next(each for _, each in places if each.type != "cpu")
            if self.adopt(tensors, gpu, call):
                places = [(each, place_of(each)) for each in tensors]
                device = rules.common_device(places, rule.scalars)
        if device is not None and device.type != "cpu":
            for index, name in (*rule.changes, *rule.together):
                target = args[index] if index < len(args) else kwargs.get(name)
                if isinstance(target, Tensor) and place_of(target) != device:
                    device = None  # a scalar of the CPU may be read elsewhere, but not written
                    break
        if device is not None and device.type != "cpu":
            for tensor, place in places:
                if tensor.requires_grad and place.type == "cpu":
                    bring_gradient_home(tensor)
        if device is None:
            given = arguments_of(func, args, kwargs, tensors)
            message, odd = rules.refusal(func, given, rule.scalars and not rule.changes)
            fail(message, [odd, next(each for each in given if each.device != odd.device)])
        return device

    def foreach(
        self, func: Any, rule: rules.Rule, args: tuple[Any, ...], kwargs: Any, call: Any
    ) -> torch.device:
        """Check the lists of an operation on lists, item by item."""
        values = (*args, *kwargs.values())
        lists = [each for each in values if isinstance(each, (list, tuple))]
        lists = [each for each in lists if each and isinstance(each[0], Tensor)]
        device = CPU
        steps = "fused" in rule.name or "_amp_" in rule.name
        for items in zip(*lists, strict=False):
            together = [each for each in items if not (steps and each.dim() == 0)]
            device = self.one_device(func, rule, together or list(items), (), {}, call)
        return device

    def exchanged(self, tensors: list[Tensor]) -> torch.device:
        """Check an exchange between processes: NCCL takes tensors of a GPU alone."""
        places = [place_of(each) for each in tensors]
        if self.running.exchange_on_gpu and any(each.type == "cpu" for each in places):
            left = tensors[next(i for i, each in enumerate(places) if each.type == "cpu")]
            mark = mark_of(left)
            if mark is None or mark.call is None:
                fail("No backend type associated with device type cpu", [argument("tensor", left)])
        return next((each for each in places if each.type != "cpu"), CPU)

    def copy_between(
        self, rule: rules.Rule, tensors: list[Tensor], non_blocking: bool, call: Any
    ) -> None:
        """Count a copy into a tensor that is there already."""
        if len(tensors) < 2 or not rule.name.startswith(("aten::copy", "aten::_foreach_copy")):
            return
        half = len(tensors) // 2
        for target, source in zip(tensors[:half], tensors[half:], strict=False):
            here, there = place_of(target), place_of(source)
            if mark_of(source) is None and keeps(frame_at(3)):
                continue  # what an exchange between processes copies for itself
            if here == there or self.adopt([target, source], max(here, there, key=str), call):
                continue
            count_copy(source, here, non_blocking)

    def adopt(self, tensors: Any, device: torch.device, call: Any) -> bool:
        """Give what C++ made for the call that runs the device of that call."""
        adopted = False
        for tensor in tensors:
            mark = mark_of(tensor) if isinstance(tensor, Tensor) else None
            if mark is not None and mark.call is not None and mark.device.type == "cpu":
                kept = mark.call == "kept"
                if kept or mark.call == call:
                    put(tensor, device, mark.place)
                    adopted = True
        return adopted

    def mark(
        self,
        out: Any,
        rule: rules.Rule,
        device: torch.device,
        place: Any,
        call: Any,
        tensors: list[Tensor],
    ) -> None:
        """Mark the storages that an operation has made or enlarged."""
        running = self.running
        for index, each in enumerate(results(out)):
            on = CPU if index in rule.cpu_results else device
            try:
                storage = each.untyped_storage()
            except (NotImplementedError, RuntimeError):
                put(each, on, place)
                continue
            known = mark_in(storage)
            if known is not None and known.world is running:
                if rule.changes and known.size != storage.nbytes():
                    known.leave()
                    Mark(running, known.device, storage, place)
                continue
            if real_device(each).type != "cpu":
                continue
            if on.type == "cpu" and any(shares(each, other) for other in tensors):
                continue  # a view of what was there before
            if on.type == "mps" and each.dtype == torch.float64:
                raise TypeError(NO_FLOAT64)
            made = Mark(running, on, storage, place)
            if on.type == "cpu" and not running.thread.asked:
                made.call = self.unasked(rule, tensors, call)

    def unasked(self, rule: rules.Rule, tensors: list[Tensor], call: Any) -> Any:
        """Return the call that made a tensor without being asked for one, or None."""
        if rule.makes:
            return "kept" if keeps(frame_at(3)) else call
        marks = [mark_of(each) for each in tensors]
        if tensors and all(mark is not None and mark.call == call for mark in marks):
            return call
        return None


TORCH = torch.__path__[0]
register_hook = Tensor.register_hook


def gradient_of_the_cpu(gradient: Tensor) -> Tensor:
    """Copy the gradient of a scalar to the CPU, as PyTorch does by itself."""
    return move(gradient, CPU) if State.world is not None else gradient


def bring_gradient_home(scalar: Tensor) -> None:
    """Let a scalar of the CPU, which was used on a GPU, get its gradient on the CPU."""
    if gradient_of_the_cpu not in (scalar._backward_hooks or {}).values():
        register_hook(scalar, gradient_of_the_cpu)


def check_storages(tensors: list[Tensor]) -> None:
    """Refuse to let a tensor use the memory of one on another device."""
    places = [place_of(each) for each in tensors]
    if places[0] != places[-1]:
        message = (
            f'Attempted to set the storage of a tensor on device "{places[0]}" to a storage on '
            f'different device "{places[-1]}".  This is no longer allowed; the devices must match.'
        )
        fail(message, [argument("source", tensors[-1])])


def keeps(frame: FrameType) -> bool:
    """Tell whether a call is one of those whose C++ code keeps tensors of its own."""
    name = frame.f_code.co_filename
    return name.startswith(TORCH) and any(part in name for part in KEEPERS)


def wraps_others(kind: type) -> bool:
    """Tell whether a class of tensors handles operations itself."""
    handler = getattr(kind, "__torch_dispatch__", None)
    return handler is not None and handler is not torch._C._disabled_torch_dispatch_impl


def shares(one: Tensor, other: Tensor) -> bool:
    """Tell whether two tensors have one storage."""
    try:
        return one.untyped_storage() is other.untyped_storage()
    except (NotImplementedError, RuntimeError):
        return False


def given_tensors(args: Any, kwargs: dict[str, Any]) -> list[Tensor]:
    """Return the tensors among arguments, also those in lists."""
    found = []
    for each in (*args, *kwargs.values()):
        if isinstance(each, Tensor):
            found.append(each)
        elif isinstance(each, (list, tuple)):
            found += [item for item in each if isinstance(item, Tensor)]
    return found


def results(out: Any) -> list[Tensor]:
    """Return the tensors of a result."""
    if isinstance(out, Tensor):
        return [out]
    return given_tensors(out, {}) if isinstance(out, (list, tuple)) else []


def arguments_of(func: Any, args: Any, kwargs: Any, among: list[Tensor]) -> list[Argument]:
    """Return those arguments of an operation that are among the tensors that it checks."""
    names = [each.name for each in func._schema.arguments]
    given = [*zip(names, args, strict=False), *kwargs.items()]
    found = []
    for name, value in given:
        for each in value if isinstance(value, (list, tuple)) else [value]:
            if isinstance(each, Tensor) and any(each is one for one in among):
                found.append(argument(name, each))
    return found or [argument("tensors", each) for each in among]


def is_mask(index: Any) -> bool:
    """Tell whether an index picks by truth, whose number of results only the GPU knows."""
    return isinstance(index, Tensor) and index.dtype in (torch.bool, torch.uint8)


#: what the CPU says of a kernel that it has not got in 16 bits, PyTorch's own or oneDNN's
NOT_ON_THE_CPU = ("not implemented for", "could not create a primitive")


def run(func: Any, slow: bool, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run an operation; what the CPU lacks or takes long for in 16 bits in 32, rounded after."""
    if slow and any(each.dtype == torch.float16 for each in given_tensors(args, kwargs)):
        return run_widened(func, args, kwargs)
    try:
        return func(*args, **kwargs)
    except RuntimeError as error:  # NotImplementedError is one, and oneDNN's own has no class
        if not any(each in str(error) for each in NOT_ON_THE_CPU):
            raise
        return run_widened(func, args, kwargs)


def run_widened(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run an operation of 16 bits in 32, and round the results."""
    narrow = next((each.dtype for each in given_tensors(args, kwargs) if is_narrow(each)), None)
    wide = {name: widened(value) for name, value in kwargs.items()}
    out = func(*(widened(each) for each in args), **wide)
    if narrow is None:
        return out
    if isinstance(out, Tensor):
        return rounded(out, narrow)
    return type(out)(rounded(each, narrow) for each in out)


def rounded(value: Any, dtype: torch.dtype) -> Any:
    """Return a tensor of float32 in another type; anything else as it is."""
    wide = isinstance(value, Tensor) and value.dtype == torch.float32
    return value.to(dtype) if wide else value


def is_narrow(value: Any) -> bool:
    """Tell whether a value is a tensor of 16 bits."""
    return isinstance(value, Tensor) and value.dtype in (torch.float16, torch.bfloat16)


def widened(value: Any) -> Any:
    """Return tensors of 16 bits in 32."""
    return value.float() if is_narrow(value) else value


def fail(message: str, arguments: list[Argument]) -> None:
    """Raise PyTorch's error, with a note on the tensor that was left behind."""
    error = RuntimeError(message)
    error.add_note("\n".join(explained(arguments)))
    raise error


def explained(arguments: list[Argument]) -> list[str]:
    """Return what is known about the tensors of an error: the one left behind, and another."""
    lines: list[str] = []
    for name, tensor, device in arguments:
        called = name_of(tensor)
        mark = mark_of(tensor)
        made = f"made at {describe(mark.place)}" if mark else "made before the rehearsal began"
        known_as = f"`{called}`, " if called else ""
        start = "the other:" if lines else "which one:"
        shape = tuple(tensor.shape)
        lines.append(
            f"rehearsal: {start} {known_as}argument {name!r} of shape {shape} on {device}, {made}"
        )
    on_cpu = any(each.device.type == "cpu" for each in arguments)
    if on_cpu and len(arguments) > 1:
        target = next(each.device for each in arguments if each.device.type != "cpu")
        lines.append(f"rehearsal: the fix: move it, for example with .to({str(target)!r})")
    return lines
