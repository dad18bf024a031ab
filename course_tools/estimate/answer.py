"""The answer for one machine: hours, cost, and whether it fits."""

import math
from dataclasses import dataclass
from typing import Any

from course_tools.estimate.machine import HERE, Machine
from course_tools.estimate.memory.memory_model import capacity_bytes
from course_tools.estimate.prices import OFFERS, Price
from course_tools.estimate.time.error_factor import ErrorFactor
from course_tools.estimate.time.step_time import StepTime
from course_tools.estimate.words import CENT, amount_text, amounts, number, span, with_currency
from course_utils.units import format_bytes, format_seconds

BRIM = 0.9  # a step that needs more of a memory only just fits
WHY = {
    "launches": "limited by launching kernels",
    "memory": "limited by its memory bandwidth",
    "arithmetic": "limited by its arithmetic",
}
# of an answer, in the file
FIGURES: tuple[str, ...] = (
    "device",
    "kind",
    "count",
    "precision",
    "hours",
    "cost",
    "fits",
    "needed_bytes",
    "limit",
    "step_s",
    "samples_per_s",
    "factor",
    "currency",
    "checked",
)


@dataclass(frozen=True)
class Answer:
    """One machine's answer, to a question of training, fine-tuning or serving.

    Attributes:
        machine: that would do the job, or None for the user's own, which was measured.
        precision: what it computes in.
        step_s: seconds of a step.
        batch: samples in a step on all devices together.
        samples: in one epoch.
        epochs: how many times all samples are used.
        price: of an hour of one device, or None where none is known.
        evidence: how far the seconds may be off, and why.
        parts: what the step consists of, or None where it was measured or is not split.
        needed_bytes: of memory in each device; None where that is not known.
        fits: whether the device has so much; None where that is not known.
        doubts: why a measured figure is unreliable, one sentence each.
        where: the free offer that these devices belong to, such as "Colab", or "".
        flops: arithmetic operations of the whole job; None where they are not known.
        tokens_per_s: that are trained or written, from low to high; None where there are none.
    """

    machine: Machine | None
    precision: str
    step_s: float
    batch: int
    samples: float
    epochs: int
    price: Price | None
    evidence: ErrorFactor
    parts: StepTime | None = None
    needed_bytes: float | None = None
    fits: bool | None = None
    doubts: tuple[str, ...] = ()
    where: str = ""
    flops: float | None = None
    tokens_per_s: tuple[float, float] | None = None

    @property
    def device(self) -> str:
        """The chip's name, or "this machine"."""
        return self.machine.chip.name if self.machine else HERE

    @property
    def count(self) -> int:
        """How many devices work together."""
        return self.machine.count if self.machine else 1

    @property
    def name(self) -> str:
        """The device, with the number of them if they are several, and where it is free."""
        name = self.machine.name if self.machine else HERE
        return f"{name} on {self.where}" if self.where else name

    @property
    def kind(self) -> str:
        """Either "estimated", or "measured" for the user's own machine."""
        return "estimated" if self.machine else "measured"

    @property
    def checked(self) -> bool:
        """Whether such work on such a device was compared with published measurements."""
        return self.evidence.checked

    @property
    def currency(self) -> str | None:
        """The currency of the price, or None where there is no price."""
        return None if self.price is None else self.price.currency

    @property
    def factor(self) -> float:
        """In nine cases of ten the truth is no less than step_s / factor."""
        return self.evidence.factor

    @property
    def step_interval_s(self) -> tuple[float, float]:
        """The seconds of a step between which the truth lies in nine cases of ten."""
        return self.step_s / self.factor, self.step_s * self.evidence.upper

    @property
    def samples_per_s(self) -> float:
        """Samples per second of all devices together."""
        return self.batch / self.step_s

    @property
    def hours(self) -> float:
        """Hours of the whole job; an epoch takes one step at least."""
        return self.epochs * max(self.samples, self.batch) / self.samples_per_s / 3600

    @property
    def hours_interval(self) -> tuple[float, float]:
        """The hours between which the truth lies in nine cases of ten."""
        return self.hours / self.factor, self.hours * self.evidence.upper

    @property
    def limit(self) -> str:
        """Whether "launches", "memory" or "arithmetic" limits the step; "" where not known."""
        return self.parts.limit if self.parts else ""

    @property
    def capacity_bytes(self) -> float | None:
        """Bytes of the memory of each device."""
        return capacity_bytes(self.machine.chip) if self.machine else None

    @property
    def cost(self) -> float | None:
        """Price of the whole job, or None where there is no price."""
        return None if self.price is None else self.hours * self.count * self.price.per_hour

    @property
    def cost_interval(self) -> tuple[float, float] | None:
        """The cost between which the truth lies in nine cases of ten."""
        cost = self.cost
        return None if cost is None else (cost / self.factor, cost * self.evidence.upper)

    def cells(self) -> tuple[str, ...]:
        """Return the row of the short table as text."""
        return self.name, span(self.hours_interval), self.cost_text(), self._fits(), self._why()

    def cost_text(self, *, bare: bool = False) -> str:
        """Return what the job costs; unless `bare`, with a kind of offer that is not on demand."""
        if self.price is None or self.cost_interval is None:
            return "no price"
        if self.price.per_hour == 0:
            return "free"
        text = amounts(self.cost_interval, self.price.currency)
        return text if bare else self._with_kind(text)

    def _with_kind(self, cost: str) -> str:
        kind = self.price.kind if self.price else ""
        return cost if kind in ("", OFFERS[0]) else f"{cost}, {kind}"

    def rate_text(self) -> str:
        """Return the tokens per second, as an interval."""
        low, high = self.tokens_per_s or (0.0, 0.0)
        return f"{number(low)} to {number(high)} tokens/s"

    def _fits(self) -> str:
        if self.fits is False:
            needed, capacity = self.needed_bytes or 0.0, self.capacity_bytes or 0.0
            if needed <= capacity:  # the estimate may be off by more than the rest
                return f"no: about {format_bytes(needed)}, too near its {format_bytes(capacity)}"
            return f"no: needs {format_bytes(needed)}, has {format_bytes(capacity)}"
        if self.needed_bytes is None and self.machine:
            return "not known"
        needed, capacity = self.needed_bytes or 0.0, self.capacity_bytes or math.inf
        return "just" if needed > BRIM * capacity else "yes"

    def _why(self) -> str:
        why = WHY.get(self.limit, "measured")
        if self.tokens_per_s:
            why = self.rate_text()
        if self.machine and not self.checked:
            why += ", unchecked"
        if self.doubts:
            why += f", unreliable: {self.doubts[0]}"
        return why

    def long_cells(self) -> tuple[str, ...]:
        """Return the row of the long table as text."""
        return (
            self.name,
            self.precision,
            format_seconds(self.step_s),
            number(self.samples_per_s),
            self._cost_of_thousand(),
            format_bytes(self.needed_bytes),
            self._factors(),
        )

    def _cost_of_thousand(self) -> str:
        """Return what 1,000 samples cost, in two digits, also where that is less than a cent."""
        if self.price is None or self.currency is None:
            return "?"
        each = 1000 / self.samples_per_s / 3600 * self.count * self.price.per_hour
        if each == 0:
            return "free"
        if each >= CENT:
            return self._with_kind(amount_text(each, self.currency))
        if each < 1e-4:
            return self._with_kind(f"< {with_currency('0.0001', self.currency)}")
        return self._with_kind(with_currency(f"{each:.2g}", self.currency))

    def _factors(self) -> str:
        low, high = f"{self.factor:.2g}", f"{self.evidence.upper:.2g}"
        return low if low == high else f"/{low}, x{high}"

    def figures(self) -> dict[str, Any]:
        """Return the figures as one row of a table."""
        flat = {name: getattr(self, name) for name in FIGURES}
        flat["hours_low"], flat["hours_high"] = self.hours_interval
        flat["cost_low"], flat["cost_high"] = self.cost_interval or (None, None)
        return flat
