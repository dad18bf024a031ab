"""Watch how long the graphs live that PyTorch keeps for the backward pass."""

import weakref
from typing import Any

import torch
from torch import Tensor, nn


class Graphs:
    """Counts the graphs of the tensors that it was given which are still alive."""

    def __init__(self) -> None:
        self._marks: weakref.WeakSet[_Mark] = weakref.WeakSet()

    def __len__(self) -> int:
        return len(self._marks)

    def watch(self, result: Tensor) -> Tensor:
        """Return a result to be used in place of this one, whose graph counts from now on."""
        mark = _Mark()
        self._marks.add(mark)
        return _Hold.apply(result, mark)

    def watch_calls(self, network: nn.Module) -> list[int]:
        """Return a list that gets, at each later call, how many graphs of earlier calls still live.

        One may: the loop's own name for the last loss.
        """
        alive: list[int] = []

        def after(_: nn.Module, __: Any, outputs: Tensor) -> Tensor:
            alive.append(len(self))
            return self.watch(outputs)

        network.register_forward_hook(after)
        return alive


class _Mark:
    """What a weak reference can point to."""


class _Hold(torch.autograd.Function):
    """Returns its input, and holds a mark for as long as the graph lives."""

    @staticmethod
    def forward(ctx: Any, result: Tensor, mark: _Mark) -> Tensor:
        ctx.mark = mark
        return result.clone()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        return gradients[0], None
