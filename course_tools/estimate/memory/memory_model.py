"""Memory model: from the bytes of one counted step to any batch, any chip, without torch.

A step is a list of moments, one after each operation. At a moment the tensors in use take

    held + per_sample * batch    bytes

so a moment is a straight line over the batch, and the peak of the step is the highest line:

    tensors = max over the moments (held + per_sample * batch)
    needed  = context_bytes + (1 + gaps) * tensors

`held` is parameters, gradients, optimizer state, activations that do not grow with the batch, and
in sharded training the parameters that are whole at a time. `context_bytes` is CUDA itself, `gaps`
what the allocator leaves between tensors: two numbers of memory.json, fitted on published
trainings. What fits by less than `margin` is not said to fit. A chip has `capacity_bytes`, so the
largest batch that fits is

    room    = (capacity / (1 + margin) - context_bytes) / (1 + gaps)
    largest = min over the moments (floor((room - held) / per_sample));  0 where some held > room

Only lines that are the highest at some batch matter; `highest_lines` picks them, usually fewer than
five of some thousand, and they are what `Memory.to_dict` gives to a program in another language.
"""

import json
import math
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from course_tools.estimate.chips import Chip
from course_utils.units import format_bytes

MEMORY_FILE = Path(__file__).parent / "memory.json"
GIB = 2**30
MEMORY_PARTS = ("parameters", "gradients", "optimizer", "activations")
UNBOUNDED = 10**9  # samples: where nothing grows with the batch


class Moment(NamedTuple):
    """The bytes that are in use after one operation of a step."""

    phase: str  # "forward", "backward" or "optimizer"
    operation: str  # PyTorch's name of it
    parameters: int
    gradients: int
    optimizer: int  # its state, and what it makes while it updates
    # results that the backward pass will need, the batch itself, and what an operation just made
    activations: int
    per_sample: float = math.nan  # what one more sample adds to them, where that is known
    gathered: int = 0  # what is whole of a model that devices share, while it is computed with

    @property
    def total(self) -> int:
        """All of them together."""
        held = self.parameters + self.gradients + self.optimizer + self.activations
        return held + self.gathered


class MemoryLine(NamedTuple):
    """The bytes at a moment as a straight line over the batch."""

    held: float  # at a batch of zero
    per_sample: float

    def at(self, batch: int) -> float:
        """Bytes at a batch."""
        return self.held + self.per_sample * batch


def highest_lines(lines: Iterable[MemoryLine]) -> list[MemoryLine]:
    """Return the lines that are the highest at some batch of 1 or more, flattest first."""
    kept: list[MemoryLine] = []
    for line in sorted(lines, key=lambda line: (line.per_sample, line.held)):
        # a line that starts no higher at one sample and rises no faster is never the highest
        while kept and kept[-1].at(1) <= line.at(1):
            kept.pop()
        while len(kept) > 1 and _meet(kept[-2], line) <= _meet(kept[-2], kept[-1]):
            kept.pop()
        if not kept or line.per_sample > kept[-1].per_sample:
            kept.append(line)
    return kept


def _meet(flat: MemoryLine, steep: MemoryLine) -> float:
    """Return the batch from which on the steeper line is the higher."""
    return (flat.held - steep.held) / (steep.per_sample - flat.per_sample)


def framework_bytes(tensors_bytes: float) -> float:
    """Return what a GPU needs beside the tensors: CUDA, work space, and gaps between tensors."""
    numbers = memory_numbers()["numbers"]
    return float(numbers["context_bytes"] + numbers["gaps"] * tensors_bytes)


class Held:
    """The bytes of each part at the peak, in the fields of a dataclass that is made of this."""

    def parts(self) -> dict[str, float]:
        """Return the bytes of each part, the framework with them."""
        return vars(self) | {"framework": framework_bytes(self.tensors_bytes)}

    @property
    def tensors_bytes(self) -> float:
        """Bytes of all tensors at the peak."""
        return float(sum(vars(self).values()))

    @property
    def needed_bytes(self) -> float:
        """What a GPU must have: the tensors, and CUDA and gaps between them."""
        return self.tensors_bytes + framework_bytes(self.tensors_bytes)

    def sentence(self) -> str:
        """Return the parts in words."""
        sizes = self.parts() | {"needed": self.needed_bytes}
        parts = ", ".join(f"{name} {format_bytes(size)}" for name, size in sizes.items())
        return f"Memory at the peak: {parts}."


def largest_batch(lines: Sequence[MemoryLine], capacity: float) -> int:
    """Return the largest batch whose step fits a capacity in bytes, or 0 where not one sample does.

    Args:
        lines: of the step; those of `highest_lines` are enough.
        capacity: in bytes, such as `capacity_bytes` of a chip.
    """
    numbers = memory_numbers()["numbers"]
    usable = capacity / (1 + numbers["margin"])
    room = (usable - numbers["context_bytes"]) / (1 + numbers["gaps"])
    largest = UNBOUNDED
    for line in lines:
        if line.per_sample > 0:
            largest = min(largest, math.floor((room - line.held) / line.per_sample))
        elif line.held > room:
            return 0
    return max(0, largest)


def fits(needed: float, capacity: float, margin: str = "margin") -> bool:
    """Return whether a device with some capacity has room, by a margin.

    Args:
        needed, capacity: in bytes.
        margin: which of memory.json is kept free: "margin" for steps that were followed, and
            "formula_margin" for what a formula says, which is further off.
    """
    return bool(needed * (1 + memory_numbers()["numbers"][margin]) <= capacity)


def capacity_bytes(chip: Chip) -> float:
    """Return the bytes that programs can use of a chip's memory, whose GB are GiB.

    Where error correction takes a sixteenth, nvidia-smi shows 15,360 MiB of a T4's 16 GiB.
    """
    return chip.memory_gb * GIB * (15 / 16 if chip.corrected else 1)


@cache
def memory_numbers() -> dict[str, Any]:
    """Return memory.json: the fitted numbers, and how well they did on other training runs."""
    return dict(json.loads(MEMORY_FILE.read_text(encoding="utf-8")))


def memory_note(training: bool, optimizer: str) -> str:
    """Return what the verdicts on memory stand on, in one or two sentences."""
    known = memory_numbers()
    right, asked = known["right"]["tested"], known["questions"]
    checked = "for inference, which was not compared with anything"
    if training:
        published = f"verdicts on training runs published for the {known['card']}"
        checked = f"with Adam; {right} of {asked} {published} were right"
        if optimizer != "adam":
            checked = f"with {optimizer}; with Adam, {right} of {asked} {published} were right"
    advice = "`estimate_memory` says what fills it and which batch fits."
    return f"Memory is estimated {checked}. {advice}"
