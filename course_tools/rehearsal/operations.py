"""Every operation, watched: where its tensors are, whether the device accepts that, what it is."""

from dataclasses import dataclass, replace
from types import FrameType
from typing import Any, NoReturn

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from course_tools.rehearsal import rules
from course_tools.rehearsal.lines import TORCH, Spot, calling_frame, current_spot, describe, name_of
from course_tools.rehearsal.placement import (
    NO_FLOAT64,
    RESCUED,
    Argument,
    Mark,
    argument,
    count_copy,
    fake_mode,
    is_fake,
    mark_in,
    mark_of,
    move,
    put,
    real_device,
    simulated_device,
)
from course_tools.rehearsal.world import CPU, State, World

#: folders of torch whose C++ code keeps tensors that Python never asked for: buckets of gradients
KEEPERS = ("/nn/parallel/", "/distributed/")


@dataclass(slots=True)
class Operation:
    """One operation of PyTorch that is about to run, and who called it."""

    func: Any
    rule: rules.Rule
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    tensors: list[Tensor]  #: among the arguments, also in lists
    spot: Spot  #: the line of the program
    call: tuple[int, int]  #: the Python frame that called, and its instruction
    keeps_tensors: bool  #: that frame is torch's, and its C++ code keeps tensors for later


class Watch(TorchDispatchMode):
    """Sees each operation of a thread, forward and backward, before it runs on the CPU."""

    supports_higher_order_operators = True

    def __init__(self, world: World) -> None:
        super().__init__()
        self.world = world

    def __enter__(self) -> "Watch":
        """Watch the thread that enters."""
        self.world.thread.watched = True
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
        world = self.world
        world.seen.operations += 1
        RESCUED.clear()
        asked = None
        if world.simulates(kwargs.get("device")):
            asked = world.device(kwargs["device"])
            kwargs = {**kwargs, "device": CPU}
        caller = calling_frame()
        operation = Operation(
            func=func,
            rule=rules.rule_of(func),
            args=args,
            kwargs=kwargs,
            tensors=given_tensors(args, kwargs),
            spot=current_spot(),
            call=(id(caller), caller.f_lasti),
            keeps_tensors=keeps_tensors(caller),
        )
        device = self.checked_device(operation)
        makes_on = device if operation.tensors else asked or world.thread.making_on or CPU
        if problem := rules.generator_problem(kwargs.get("generator"), makes_on):
            raise RuntimeError(problem)
        self.count(operation, device)
        out = run(func, operation.rule.slow, args, kwargs)
        if operation.rule.foreign and operation.tensors:
            world.seen.remark(
                f"The operation {operation.rule.name} is not PyTorch's: its kernel for the CPU "
                "ran, and what its kernel for a GPU does was not looked at."
            )
        if asked is not None:
            for each in results(out):
                put(each, asked, operation.spot)
        self.mark_results(operation, out, asked or device)
        return out

    def passes(self, func: Any, types: Any) -> bool:
        """Tell whether an operation is none of this rehearsal's."""
        fake = fake_mode() or any(is_fake(each) for each in types)
        if fake or State.world is not self.world:
            return True
        return not isinstance(func, torch._ops.OpOverload)  # it runs others, not seen here

    def count(self, operation: Operation, device: torch.device) -> None:
        """Count an operation on a device, and what that means for the program."""
        world, rule, tensors = self.world, operation.rule, operation.tensors
        if device.type == world.kind:
            world.initialize()
            world.seen.on_gpu += 1
            if device.type == "cuda":
                rules.check_kernel(rule, tensors)
            if wait := rules.wait_of(operation.func, operation.args, operation.kwargs):
                world.seen.add(f"wait: {wait}", operation.spot)
            elif rule.indices is not None:
                self.count_indices(operation, rule.indices, device)
            elif rule.name == "aten::where":
                self.count_scalars(operation, device)
            return
        of_values = bool(tensors) and not rule.anywhere and tensors[0].dim() > 0
        if device.type == "cpu" and world.initialized and of_values:
            world.seen.add("on the CPU", operation.spot)

    def checked_device(self, operation: Operation) -> torch.device:
        """Return the device of an operation, or raise what PyTorch raises on the real one."""
        rule, tensors, args = operation.rule, operation.tensors, operation.args
        if not tensors:
            return CPU
        first = simulated_device(tensors[0])
        if rule.anywhere:
            if rule.name == "aten::set_":
                check_storages(tensors)
            self.count_copies(operation)
            return first
        if rule.lengths is not None:
            problem = rules.lengths_problem(args[rule.lengths])
            if problem:
                fail(problem, [argument("lengths", args[rule.lengths])])
            return first
        if rule.exchange:
            return self.exchanged(tensors)
        if rule.foreach:
            return self.device_of_lists(operation)
        if rule.indices is not None:
            return self.indexed(operation, rule.indices)
        return self.one_device(operation)

    def indexed(self, operation: Operation, position: int) -> torch.device:
        """Return the device of an operation by index, whose indices may be on the CPU too."""
        rows, indices = operation.tensors[0], operation.args[position]
        device = simulated_device(rows)
        problem = rules.indices_problem(indices, device)
        if problem:
            self.adopt(indices, device, operation.call)
            problem = rules.indices_problem(indices, device)
        if problem:
            fail(problem, [argument("self", rows)])
        values = given_tensors(operation.args[position + 1 :], operation.kwargs)
        single = next((value for value in values if not value.dim()), None)
        if device.type == "cpu" and single is not None and simulated_device(single).type != "cpu":
            count_copy(single, device, False)  # PyTorch copies such a value itself
            return device
        return self.one_device(replace(operation, tensors=[rows, *values]))

    def one_device(self, operation: Operation) -> torch.device:
        """Return the one device of an operation's tensors, or raise."""
        rule, tensors = operation.rule, operation.tensors
        devices = [simulated_device(each) for each in tensors]
        device = rules.common_device(tensors, devices, rule.scalars)
        if device is None:
            gpu = next(each for each in devices if each.type != "cpu")
            if self.adopt(tensors, gpu, operation.call):
                devices = [simulated_device(each) for each in tensors]
                device = rules.common_device(tensors, devices, rule.scalars)
        if device is None or not writes_on(operation, device):
            given = arguments_of(operation)
            message, odd = rules.refusal(operation.func, given, rule.scalars and not rule.changes)
            fail(message, [odd, next(each for each in given if each.device != odd.device)])
        if device.type != "cpu":
            for tensor, where in zip(tensors, devices, strict=True):
                if tensor.requires_grad and where.type == "cpu":
                    bring_gradient_home(tensor)
        return device

    def device_of_lists(self, operation: Operation) -> torch.device:
        """Check the lists of an operation on lists, item by item."""
        name = operation.rule.name
        values = (*operation.args, *operation.kwargs.values())
        lists = [each for each in values if isinstance(each, (list, tuple))]
        lists = [each for each in lists if each and isinstance(each[0], Tensor)]
        device = CPU
        counts_steps = "fused" in name or "_amp_" in name  # in scalars that may be anywhere
        for items in zip(*lists, strict=False):
            together = [each for each in items if not (counts_steps and each.dim() == 0)]
            of_items = replace(operation, tensors=together or list(items), args=(), kwargs={})
            device = self.one_device(of_items)
        return device

    def exchanged(self, tensors: list[Tensor]) -> torch.device:
        """Check an exchange between processes: NCCL takes tensors of a GPU alone."""
        devices = [simulated_device(each) for each in tensors]
        if self.world.exchange_on_gpu and any(each.type == "cpu" for each in devices):
            left = tensors[next(i for i, each in enumerate(devices) if each.type == "cpu")]
            mark = mark_of(left)
            if mark is None or not (mark.kept or mark.made_by):
                fail("No backend type associated with device type cpu", [argument("tensor", left)])
        return next((each for each in devices if each.type != "cpu"), CPU)

    def count_copies(self, operation: Operation) -> None:
        """Count the copies into tensors that are there already."""
        tensors, args = operation.tensors, operation.args
        copies = operation.rule.name.startswith(("aten::copy", "aten::_foreach_copy"))
        if len(tensors) < 2 or not copies:
            return
        non_blocking = operation.kwargs.get("non_blocking", args[2] if len(args) > 2 else False)
        half = len(tensors) // 2
        for target, source in zip(tensors[:half], tensors[half:], strict=False):
            if mark_of(source) is None and operation.keeps_tensors:
                continue  # what an exchange between processes copies for itself
            here, there = simulated_device(target), simulated_device(source)
            gpu = max(here, there, key=str)
            if is_number(source) and not copies_numbers(here):
                continue
            if here != there and not self.adopt([target, source], gpu, operation.call):
                # CUDA returns when a copy to pageable memory has ended, also an asynchronous one.
                pageable = here.type == "cpu" and not target.is_pinned()
                count_copy(source, here, non_blocking is True and not pageable)

    def count_indices(self, operation: Operation, position: int, device: torch.device) -> None:
        """Count what an operation by index copies to a GPU itself, and the wait for a mask."""
        indices = [each for each in operation.args[position] if isinstance(each, Tensor)]
        values = given_tensors(operation.args[position + 1 : position + 2], operation.kwargs)
        for index in indices:
            on_cpu = simulated_device(index).type == "cpu"
            if on_cpu and not self.adopt([index], device, operation.call):
                count_index(index, device)
        if is_masked_fill(operation, indices, values):
            return
        for index in indices:
            if is_mask(index) and (rules.is_there(index) or mark_of(index) is None):
                self.world.seen.add("wait: nonzero or a boolean mask", operation.spot)
        self.count_scalars(replace(operation, tensors=values), device)

    def count_scalars(self, operation: Operation, device: torch.device) -> None:
        """Count the scalars of the CPU that an operation copies to the GPU before it runs."""
        for each in operation.tensors:
            if rules.is_there(each) or self.adopt([each], device, operation.call):
                continue
            if not is_number(each) or copies_numbers(device):
                count_copy(each, device, False)

    def adopt(self, tensors: Any, device: torch.device, call: tuple[int, int]) -> bool:
        """Give what C++ made for the call that runs the device of that call."""
        adopted = False
        for tensor in tensors:
            mark = mark_of(tensor) if isinstance(tensor, Tensor) else None
            if mark is None or mark.device.type != "cpu":
                continue
            if mark.kept or mark.made_by == call:
                put(tensor, device, mark.spot)
                adopted = True
        return adopted

    def mark_results(self, operation: Operation, out: Any, device: torch.device) -> None:
        """Mark the storages that an operation has made or enlarged."""
        for index, each in enumerate(results(out)):
            on = CPU if index in operation.rule.cpu_results else device
            try:
                storage = each.untyped_storage()
            except (NotImplementedError, RuntimeError):  # sparse, or it wraps others
                put(each, on, operation.spot)
                continue
            known = mark_in(storage)
            if known is None or known.world is not self.world:
                self.mark_new(operation, each, on)
            elif operation.rule.changes and known.size_bytes != storage.nbytes():
                known.leave()
                Mark(self.world, known.device, storage, operation.spot)

    def mark_new(self, operation: Operation, tensor: Tensor, device: torch.device) -> None:
        """Mark the storage of a result that has no mark yet."""
        if real_device(tensor).type != "cpu":
            return
        if device.type == "cpu" and any(shares(tensor, other) for other in operation.tensors):
            return  # a view of what was there before
        if device.type == "mps" and tensor.dtype == torch.float64:
            raise TypeError(NO_FLOAT64)
        made = Mark(self.world, device, tensor.untyped_storage(), operation.spot)
        if device.type == "cpu" and not self.world.thread.making_on:
            note_unasked(operation, made)


def note_unasked(operation: Operation, made: Mark) -> None:
    """Note which call made a tensor of the CPU inside C++, or that C++ keeps it."""
    if operation.rule.makes:
        made.kept = operation.keeps_tensors
        made.made_by = None if made.kept else operation.call
        return
    marks = [mark_of(each) for each in operation.tensors]
    if marks and all(mark is not None and mark.made_by == operation.call for mark in marks):
        made.made_by = operation.call


def writes_on(operation: Operation, device: torch.device) -> bool:
    """Tell whether what an operation on a GPU writes to is there: a scalar may only be read. Some
    arguments may not even be that.
    """
    if device.type == "cpu":
        return True
    for index, name in (*operation.rule.changes, *operation.rule.together):
        is_given = index < len(operation.args)
        target = operation.args[index] if is_given else operation.kwargs.get(name)
        if isinstance(target, Tensor) and simulated_device(target) != device:
            return False
    return True


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
    devices = [simulated_device(each) for each in tensors]
    if devices[0] != devices[-1]:
        message = (
            f'Attempted to set the storage of a tensor on device "{devices[0]}" to a storage on '
            f'different device "{devices[-1]}".  This is no longer allowed; the devices must match.'
        )
        fail(message, [argument("source", tensors[-1])])


def keeps_tensors(frame: FrameType) -> bool:
    """Tell whether a call is one of those whose C++ code keeps tensors of its own."""
    name = frame.f_code.co_filename
    return name.startswith(TORCH) and any(part in name for part in KEEPERS)


def wraps_others(cls: type) -> bool:
    """Tell whether a class of tensors handles operations itself."""
    handler = getattr(cls, "__torch_dispatch__", None)
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


def arguments_of(operation: Operation) -> list[Argument]:
    """Return those arguments of an operation that are among the tensors that it checks."""
    names = [each.name for each in operation.func._schema.arguments]
    given = [*zip(names, operation.args, strict=False), *operation.kwargs.items()]
    found = []
    for name, value in given:
        for each in value if isinstance(value, (list, tuple)) else [value]:
            if isinstance(each, Tensor) and any(each is one for one in operation.tensors):
                found.append(argument(name, each))
    return found or [argument("tensors", each) for each in operation.tensors]


def is_number(tensor: Tensor) -> bool:
    """Tell whether PyTorch has made a tensor of a Python number, as in `rows[0] = 1.0`."""
    return mark_of(tensor) is None and not tensor.dim()


def copies_numbers(device: torch.device) -> bool:
    """Tell whether such a number is copied to a device; others make it there."""
    return device.type == "cuda" and rules.NUMBERS_ARE_COPIED


def count_index(index: Tensor, device: torch.device) -> None:
    """Count the copy of an index of the CPU, of a list, or of what a mask picks."""
    mark = mark_of(index)
    pinned = False
    if is_mask(index) and mark is not None:  # one of a list has no mark, and is copied as it is
        with torch._C._DisableTorchDispatch():
            index = put(index.nonzero(), CPU)
        pinned = rules.MASKS_ARE_PINNED
        mark_of(index).pinned = pinned  # type: ignore[union-attr]
    count_copy(index, device, pinned)


def is_masked_fill(operation: Operation, indices: list[Tensor], values: list[Tensor]) -> bool:
    """Tell whether `rows[mask] = 1.0` fills by the mask, which needs no number of results."""
    accumulate = operation.kwargs.get("accumulate", operation.args[3:4] == (True,))
    if accumulate or len(indices) != 1 or not values:
        return False
    one_value = values[0].numel() == 1 and not rules.is_there(values[0])
    mask = indices[0]
    return one_value and is_mask(mask) and (rules.is_there(mask) or mark_of(mask) is None)


def is_mask(index: Any) -> bool:
    """Tell whether an index picks by truth, whose number of results only the GPU knows."""
    return isinstance(index, Tensor) and index.dtype in (torch.bool, torch.uint8)


#: what the CPU says of a kernel that it has not got in 16 bits, PyTorch's own or oneDNN's
NOT_ON_THE_CPU = ("not implemented for", "could not create a primitive")


def run(func: Any, slow: bool, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run an operation; what the CPU lacks or takes long for in 16 bits in 32, rounded after."""
    if slow and has_one_narrow_type(given_tensors(args, kwargs)):
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


def has_one_narrow_type(tensors: list[Tensor]) -> bool:
    """Tell whether tensors have one type of 16 bits; PyTorch refuses most mixtures."""
    return is_narrow(tensors[0]) and len({each.dtype for each in tensors}) == 1


def widened(value: Any) -> Any:
    """Return tensors of 16 bits in 32."""
    return value.float() if is_narrow(value) else value


def fail(message: str, arguments: list[Argument]) -> NoReturn:
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
        made = f"made at {describe(mark.spot)}" if mark else "made before the rehearsal began"
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
