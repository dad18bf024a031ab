"""What stands in for results that depend on values, which counting does not have."""

from typing import Any

import torch
from torch import Tensor

BOXES = "where boxes that overlap are left out (NMS), all were kept"
LAYERS = "where the model leaves out a layer at random (LayerDrop), every layer was kept"
MASKS = "where the model asks about a mask, it was taken to be causal if it asks that, or empty"
CHOICES = "where the model chooses by a random number, the first choice was taken"
CLASSES = "where the model looks for different values, such as classes, one was taken"
EXPERTS = "of experts, each was given an even share of the tokens"
PIXELS = "where the model asks for the pixels of a box, such as to paste a mask, one was taken"
# The content of a mask is not known, so questions about all of it are answered as if it were full.
ANSWERS = {"all": True, "any": False}
# LayerDrop asks whether a random number between 0 and 1 is below a small share.
KEPT = {"lt": False, "le": False, "gt": True, "ge": True}
# What makes one pixel of another, or compares it.
OF_PIXELS = {"unbind", "select", "add", "sub", "rsub", "lt", "le", "gt", "ge"}


class Values:
    """The values that were asked for in a step, and what was assumed of each.

    Attributes:
        assumed: one sentence for each kind of question that was asked.
    """

    def __init__(self) -> None:
        self.assumed: list[str] = []
        self._answers: list[tuple[Tensor, float, str]] = []
        self._random: list[Tensor] = []  # single random numbers
        self._pixels: dict[int, Tensor] = {}  # whole numbers of boxes, by their id

    def instead(self, name: str, func: Any, args: Any) -> Any:
        """Return what stands in for the result of an operation; None if it needs no values.

        Args:
            name: of the operation.
            func: the operation itself.
            args: its fake tensors.
        """
        if name == "_local_scalar_dense":
            for asked, answer, sentence in self._answers:
                if asked is args[0]:
                    self.assume(sentence)
                    return answer
            if id(args[0]) in self._pixels:
                self.assume(PIXELS)
                outside = False  # no box reaches over the edge of its image
                return outside if args[0].dtype == torch.bool else 1
        if name == "nonzero" and args[0].dtype in (torch.bool, torch.uint8):
            self.assume(MASKS)
            return torch.empty(args[0].numel(), args[0].dim(), dtype=torch.int64)
        if name == "index" and any(map(_is_mask, args[1])):
            self.assume(MASKS)
            return func(args[0], _places(args[1]))
        if name == "_unique2":
            self.assume(CLASSES)
            one = torch.empty(1, dtype=args[0].dtype)
            return one, torch.empty(args[0].shape, dtype=torch.int64), one.long()
        if name == "nms":
            self.assume(BOXES)
            return torch.empty(args[0].shape[0], dtype=torch.int64)
        return None

    def note(self, name: str, args: Any, out: Any) -> None:
        """Remember a result of an operation whose value may be asked for."""
        if name in ANSWERS and isinstance(out, Tensor) and out.dim() == 0:
            self._answers.append((out, ANSWERS[name], MASKS))
        if name == "sum" and args[0].dtype == torch.bool and out.dim() == 0:
            self._answers.append((out, args[0].numel(), MASKS))
        if name == "gt" and any(
            args[0] is asked for asked, _, why in self._answers if why == MASKS
        ):
            self._answers.append((out, True, MASKS))  # such as max(1, how many are found)
        if name == "uniform_" and out.numel() == 1:
            self._answers.append((out, 0.0, CHOICES))
        fresh = name == "rand" and out.dim() == 0
        if fresh or (name == "detach" and any(args[0] is number for number in self._random)):
            self._random.append(out)
        if name in KEPT and any(args[0] is number for number in self._random):
            self._answers.append((out, KEPT[name], LAYERS))
        boxes = name == "_to_copy" and out.dtype == torch.int64 and out.shape[1:] == (4,)
        if (boxes and args[0].is_floating_point()) or (
            name in OF_PIXELS and any(id(x) in self._pixels for x in args)
        ):
            for pixels in out if isinstance(out, (list, tuple)) else [out]:
                self._pixels[id(pixels)] = pixels

    def assume(self, sentence: str) -> None:
        """Add a sentence to what was assumed, once."""
        if sentence not in self.assumed:
            self.assumed.append(sentence)


def _is_mask(x: Any) -> bool:
    return isinstance(x, Tensor) and x.dtype == torch.bool


def _places(indices: Any) -> list[Any]:
    """Return indices with the places of all its elements in the place of each mask."""
    found: list[Any] = []
    for x in indices:
        if _is_mask(x):
            found += [torch.empty(x.numel(), dtype=torch.int64) for _ in range(x.dim())]
        else:
            found.append(x)
    return found
