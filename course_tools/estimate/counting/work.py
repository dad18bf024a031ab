"""The counted work of one step of a model; no torch is needed to read or to use it."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from course_utils.units import format_bytes, format_count

OP_KINDS = (
    "convolution",
    "depthwise",
    "convolution3d",
    "matrix",
    "attention",
    "recurrent",
    "other",
)
# What an update moves for each number that is trained: the parameter, its gradient and the state
# are read, and all but the gradient are written, in 4 bytes each; Adam8bit's two moments in 1 byte.
UPDATE_BYTES = {"sgd": 12, "momentum": 20, "adam": 28, "adamw": 28, "adam8bit": 16}


@dataclass(frozen=True)
class Op:
    """One operation of a step, as a GPU runs it: counted.

    Attributes:
        name: PyTorch's name of it, such as "addmm".
        kind: one of `OP_KINDS`.
        flops: arithmetic operations, where a multiply-add is two; 0 for "other".
        bytes_moved: bytes read and written.
        elements: numbers in the results.
        kernels: how many the host launches for it; 1 except for recurrent layers.
        unaligned: its FLOPs, if it is a product with a matrix whose rows have an odd number of
            values of 16 bits, so that they do not begin at multiples of 4 bytes; else 0.
    """

    name: str
    kind: str
    flops: float
    bytes_moved: float
    elements: float
    kernels: int = 1
    unaligned: float = 0.0


@dataclass(frozen=True)
class Sums:
    """The sums over all operations of one kind."""

    flops: float = 0.0
    bytes_moved: float = 0.0
    kernels: float = 0.0

    def times(self, factor: float) -> "Sums":
        """Return the sums of a batch that is `factor` times as large; the kernels stay."""
        return Sums(factor * self.flops, factor * self.bytes_moved, self.kernels)


@dataclass(frozen=True)
class Work:
    """The work of one step of a model: counted, neither measured nor estimated.

    Attributes:
        batch: samples in the step on one device.
        parameters: numbers in the model's parameters.
        training: whether it is a training step; else it is a forward pass.
        precision: what it computes in.
        convolution, depthwise, convolution3d, matrix, attention, recurrent, other: the sums of each
            kind of operation. A depthwise convolution has a group for each channel, "convolution3d"
            has three dimensions beside them; the optimizer's update is in "other".
        unaligned: FLOPs, among those of "matrix", of products in 16 bits with rows that do not
            begin at multiples of 4 bytes.
        channels_last: whether images and weights lie in memory with their channels last.
        loss_counted: whether a loss is part of the training step.
        detects: whether boxes that overlap are left out, as detectors do.
        assumed: what was assumed because counting has no data, one sentence each.
        ops: the operations themselves, in their order; a file does not keep them.
    """

    batch: int
    parameters: int
    training: bool
    precision: str
    convolution: Sums = Sums()
    depthwise: Sums = Sums()
    convolution3d: Sums = Sums()
    matrix: Sums = Sums()
    attention: Sums = Sums()
    recurrent: Sums = Sums()
    other: Sums = Sums()
    unaligned: float = 0.0
    channels_last: bool = False
    loss_counted: bool = False
    detects: bool = False
    assumed: tuple[str, ...] = ()
    ops: tuple[Op, ...] = field(default=(), repr=False)

    @property
    def kinds(self) -> dict[str, Sums]:
        """The sums by kind of operation."""
        return {kind: getattr(self, kind) for kind in OP_KINDS}

    @property
    def flops(self) -> float:
        """Arithmetic operations of a step, where a multiply-add is two."""
        return sum(sums.flops for sums in self.kinds.values())

    @property
    def bytes_moved(self) -> float:
        """Bytes that the operations read and write."""
        return sum(sums.bytes_moved for sums in self.kinds.values())

    @property
    def kernels(self) -> float:
        """How many kernels the host launches."""
        return sum(sums.kernels for sums in self.kinds.values())

    def __repr__(self) -> str:
        step = "training step" if self.training else "forward pass"
        samples = f"{self.batch:,} sample{'s' * (self.batch != 1)}"
        arithmetic, moved = format_count(self.flops, "FLOP"), format_bytes(self.bytes_moved)
        counted = f"{arithmetic}, {moved} moved, {self.kernels:,.0f} kernels"
        return f"{step} of {samples} in {self.precision}, counted: {counted}"

    def to_dict(self) -> dict[str, Any]:
        """Return all but the list of operations, ready for JSON."""
        return {name: value for name, value in asdict(self).items() if name != "ops"}


def sums_by_kind(ops: Sequence[Op]) -> dict[str, Sums]:
    """Return the sums of each kind of operation, as `Work` takes them."""
    found = {}
    for kind in OP_KINDS:
        alike = [op for op in ops if op.kind == kind]
        found[kind] = Sums(
            flops=sum(op.flops for op in alike),
            bytes_moved=sum(op.bytes_moved for op in alike),
            kernels=sum(op.kernels for op in alike),
        )
    return found
