"""Random numbers that are the same on every device."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map_only

# What draws inside its kernel, and cannot be given the numbers of another device.
INSIDE = re.compile(r"rnn|lstm|gru|attention")


class SameDraws(TorchDispatchMode):
    """Within this block, random numbers of every device are drawn on the CPU and moved there, those
    of dropout too; only recurrent networks and attention of a GPU draw in their own kernels.
    """

    def __torch_dispatch__(
        self,
        function: Any,
        types: Sequence[type],
        args: tuple = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        kwargs = dict(kwargs or {})
        draws = torch.Tag.nondeterministic_seeded in function.tags
        if not draws or INSIDE.search(function.name()):
            return function(*args, **kwargs)
        tensors = [value for value in args if isinstance(value, torch.Tensor)]
        device = tensors[0].device if tensors else torch.device(kwargs.get("device") or "cpu")
        if device.type == "cpu":
            return function(*args, **kwargs)
        if "device" in kwargs:
            kwargs["device"] = torch.device("cpu")
        kwargs.pop("generator", None)  # one of the device
        if function.name().partition(".")[0].endswith("_"):  # such as bernoulli_
            target, *others = args
            drawn = function(torch.empty_like(target, device="cpu"), *others, **kwargs)
            return target.copy_(drawn)
        drawn = function(*tree_map_only(torch.Tensor, torch.Tensor.cpu, args), **kwargs)
        return tree_map_only(torch.Tensor, lambda one: one.to(device), drawn)


@contextmanager
def seeded(number: int) -> Iterator[None]:
    """Draw the same numbers on the CPU in each block with this number, and leave the caller's
    generator as it was.
    """
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(number)
        yield
