"""What the backward pass asks of gradients: each is on the device of what it is the gradient of."""

import functools
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import BackwardCFunction

from course_tools.rehearsal.operations import fail
from course_tools.rehearsal.placement import argument, move, put, simulated_device
from course_tools.rehearsal.replacing import Replacement
from course_tools.rehearsal.rules import type_name
from course_tools.rehearsal.world import World


def replacements(world: World) -> Iterator[Replacement]:
    """Yield what replaces the checks that PyTorch makes in C++, where every tensor is the CPU's."""
    yield from _first_gradients()
    yield from _functions()
    yield from _hooks()
    yield Replacement(Tensor, "grad", _checked_grad())


def at_home(gradient: Any, home: torch.device, problem: str) -> Any:
    """Return a gradient that is at home, or raise; one value is moved there, as PyTorch does."""
    if not isinstance(gradient, Tensor) or simulated_device(gradient) == home:
        return gradient
    if gradient.dim() == 0:
        return move(gradient, home)
    device = simulated_device(gradient)
    message = f"{problem} - expected device {home} but got {device}"
    return fail(message, [argument("gradient", gradient)])


def devices_of(values: tuple[Any, ...]) -> list[torch.device | None]:
    """Return the devices of values, and None for each that is no tensor."""
    return [simulated_device(each) if isinstance(each, Tensor) else None for each in values]


def _first_gradients() -> Iterator[Replacement]:
    """Yield the function that takes the gradients that a program begins a backward pass with."""
    make = torch.autograd._make_grads

    @functools.wraps(make)
    def _make_grads(outputs: Any, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        made = list(make(outputs, *args, **kwargs))
        for index, (output, gradient) in enumerate(zip(outputs, made, strict=False)):
            if isinstance(output, Tensor):
                problem = f"invalid gradient at index {index}"
                made[index] = at_home(gradient, simulated_device(output), problem)
        return tuple(made)

    yield Replacement(torch.autograd, "_make_grads", _make_grads)


def _functions() -> Iterator[Replacement]:
    """Yield what lets a function of a program's own be asked where its gradients are."""
    run = vars(torch.autograd.Function)["apply"]  # written in C from PyTorch 2.14 on
    run_backward = BackwardCFunction.apply

    def apply(cls: Any, *args: Any, **kwargs: Any) -> Any:
        homes = devices_of(args)
        out = run.__get__(None, cls)(*args, **kwargs)
        listed = out if isinstance(out, tuple) else (out,)
        for each in listed:
            node = each.grad_fn if isinstance(each, Tensor) else None
            if isinstance(node, BackwardCFunction):
                node.homes, node.comes_from = homes, devices_of(listed)  # type: ignore[attr-defined]
        return out

    def apply_backward(node: Any, *gradients: Any) -> Any:
        given = list(gradients)
        for index, device in enumerate(getattr(node, "comes_from", ())):
            if device is not None and isinstance(given[index], Tensor):
                put(given[index], device)  # zeros, made in C++ for a result that nobody used
        found = run_backward(node, *given)
        checked = list(found) if isinstance(found, tuple) else [found]
        of_tensors = 0
        for index, home in enumerate(getattr(node, "homes", ())[: len(checked)]):
            if home is not None:
                name = type(node).__name__
                problem = f"Function {name} returned an invalid gradient at index {of_tensors}"
                checked[index] = at_home(checked[index], home, problem)
                of_tensors += 1
        return tuple(checked)

    yield Replacement(torch.autograd.Function, "apply", classmethod(apply))
    yield Replacement(BackwardCFunction, "apply", apply_backward)


def _hooks() -> Iterator[Replacement]:
    """Yield what checks the gradients that hooks return."""
    of_tensor, keep = Tensor.register_hook, torch.autograd.Function._register_hook

    def checked(hook: Callable[..., Any]) -> Callable[..., Any]:
        name = getattr(hook, "__name__", type(hook).__name__)

        def call(gradients: Any, *more: Any) -> Any:
            found = hook(gradients, *more)
            before = gradients if isinstance(gradients, tuple) else (gradients,)
            after = found if isinstance(found, tuple) else (found,)
            for old, new in zip(before, after, strict=False):
                both = isinstance(old, Tensor) and isinstance(new, Tensor)
                if both and simulated_device(old) != simulated_device(new):
                    was, got = (type_name(each, simulated_device(each)) for each in (old, new))
                    message = f"hook '{name}' has changed the type of value (was {was} got {got})"
                    fail(message, [argument("gradient", new)])
            return found

        call.__name__ = name  # PyTorch's own messages have it
        return call

    def register_hook(tensor: Tensor, hook: Callable[..., Any]) -> Any:
        return of_tensor(tensor, checked(hook))

    def _register_hook(hooks: Any, hook: Callable[..., Any]) -> Any:
        return keep(hooks, checked(hook))  # of a node, also of one that is written in C++

    yield Replacement(Tensor, "register_hook", register_hook)
    yield Replacement(torch.autograd.Function, "_register_hook", staticmethod(_register_hook))


class Grad(property):
    """Stands for Tensor.grad, and tells PyTorch's compiler whose it is."""

    __objclass__ = torch._C.TensorBase
    __name__ = "grad"


def _checked_grad() -> Grad:
    """Return what refuses a gradient of another device."""
    plain: Any = torch._C.TensorBase.grad

    def assign(tensor: Tensor, gradient: Any) -> None:
        here = simulated_device(tensor)
        there = simulated_device(gradient) if isinstance(gradient, Tensor) else here
        if there.type != here.type:
            fail(
                f"attempting to assign a gradient with device type '{there.type}' to a tensor with "
                f"device type '{here.type}'. Please ensure that the gradient and the tensor are on "
                "the same device",
                [argument("gradient", gradient)],
            )
        plain.__set__(tensor, gradient)

    return Grad(plain.__get__, assign, plain.__delete__)
