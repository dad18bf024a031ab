"""What a step asks of any machine: the one form that training, fine-tuning and serving share."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from course_tools.estimate.machine import Machine
from course_tools.estimate.time.error_factor import ErrorFactor
from course_tools.estimate.time.step_time import StepTime

if TYPE_CHECKING:
    from course_tools.estimate.answer import Answer


@dataclass(frozen=True)
class StepOnMachine:
    """A step of a demand on one machine.

    Attributes:
        precision: what it computes in.
        seconds: of the step.
        evidence: how far they may be off, and why.
        fits: whether each device has room for it; None where that is not known.
        needed_bytes: of memory in each device; None where that is not known.
        parts: what the seconds consist of, or None where they are not split.
        tokens_per_s: that are trained or written, from low to high; None where there are none.
    """

    precision: str
    seconds: float
    evidence: ErrorFactor
    fits: bool | None
    needed_bytes: float | None
    parts: StepTime | None = None
    tokens_per_s: tuple[float, float] | None = None


class Needed(Protocol):
    """What fills the memory of one device."""

    @property
    def needed_bytes(self) -> float | None:
        """Bytes that a device must have; None where that is not known."""


class AsAsked:
    """A demand whose batch is a part of the question, and whose answer is the usual one."""

    def larger(self, machine: Machine, samples: float) -> None:
        """See `Demand`."""

    def first_line(self, rows: Sequence["Answer"]) -> None:
        """See `Demand`."""


class Demand(Protocol):
    """What a step asks of any machine; no chip is in it.

    Attributes:
        batch: samples in a step on each device.
        flops: arithmetic operations of a step on one device; None where they are not known.
        memory: that a step takes of one device.
        together: whether several devices can share the job.
        training: whether it is one; else nothing is learned.
    """

    @property
    def batch(self) -> int: ...  # noqa: D102

    @property
    def flops(self) -> float | None: ...  # noqa: D102

    @property
    def memory(self) -> Needed: ...  # noqa: D102

    @property
    def together(self) -> bool: ...  # noqa: D102

    @property
    def training(self) -> bool: ...  # noqa: D102

    def on(self, machine: Machine) -> StepOnMachine:
        """Return the step on a machine; ValueError where it has no such precision or link."""

    def smaller(self) -> Iterator[tuple[str, "Demand"]]:
        """Yield what needs less memory, in words and as a demand, the mildest change first."""

    def larger(self, machine: Machine, samples: float) -> "Demand | None":
        """Return the same work in larger batches, where that is how people would do it."""

    def first_line(self, rows: Sequence["Answer"]) -> str | None:
        """Return the answer in words where it is not the usual one."""

    def notes(self, rows: Sequence["Answer"]) -> list[str]:
        """Return what has to be known beside the table, one sentence each."""

    def details(self, rows: Sequence["Answer"]) -> list[str]:
        """Return what the figures stand on, one sentence each."""

    def to_dict(self) -> dict[str, Any]:
        """Return the demand ready for JSON."""
