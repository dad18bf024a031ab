"""The question of an estimate, and its answer for one device."""

import math
from dataclasses import dataclass

from course_tools.estimate.money.prices import Price
from course_tools.estimate.time.error_factor import ErrorFactor
from course_tools.estimate.time.step_time import StepTime
from course_utils.text import format_bytes, format_seconds

HERE = "this machine"
# a unit, its seconds, and how many of it a person would say, at least and at most
UNITS = (
    ("year", 365 * 86400, 1, math.inf),
    ("day", 86400, 2, 365),
    ("hour", 3600, 1, 96),
    ("minute", 60, 1, 120),
    ("second", 1, 1, 120),
    ("millisecond", 1e-3, 1, 1000),
    ("microsecond", 1e-6, 0, 1000),
)
CENT = 0.01
BRIM = 0.9  # a step that needs more of a memory only just fits
WHY = {
    "launches": "limited by launching kernels",
    "memory": "limited by its memory bandwidth",
    "arithmetic": "limited by its arithmetic",
    "": "measured",
}


@dataclass(frozen=True)
class Question:
    """The question, apart from the model and the devices.

    Attributes:
        batch: samples in a step on each device.
        precision: as it was asked for, such as "amp".
        training: whether it is a training; else an inference.
        optimizer: its name.
        compiled: whether torch.compile is used.
        samples, epochs: of the job.
        deadline_hours: when it must be done, or None.
        count: the most devices that work together.
        link: what connects them, or None for each chip's own.
        host: what launches the kernels: "cloud", or where its speed was measured.
        shards: devices that share parameters, gradients and optimizer state.
    """

    batch: int
    precision: str
    training: bool
    optimizer: str
    compiled: bool
    samples: int
    epochs: int
    deadline_hours: float | None
    count: int
    link: str | None
    host: str
    shards: int = 1


@dataclass(frozen=True)
class Row:
    """One device's answer.

    Attributes:
        device: the chip's name, or the name of the machine that was measured.
        count: how many devices work together.
        precision: what it computes in.
        step_s: seconds of a step.
        batch: samples in a step on all devices together.
        samples: samples of the whole job, all epochs.
        price: of an hour of one device, or None where none is known.
        evidence: how far the estimate may be off, and why.
        parts: what the step consists of, or None where it was measured.
        needed_bytes: of memory in each device; None where it was measured.
        fits: whether the device has so much; None where that is not known.
        capacity_bytes: of the memory of each device; None where that is not known.
        watts: of all devices together, by the data sheet; None where it does not say.
        doubts: why a measured figure is unreliable, one sentence each.
        where: the free offer that these devices belong to, such as "Colab", or "".
        flops: arithmetic operations of the whole job; None where they are not known.
    """

    device: str
    count: int
    precision: str
    step_s: float
    batch: int
    samples: int
    price: Price | None
    evidence: ErrorFactor
    parts: StepTime | None = None
    needed_bytes: float | None = None
    fits: bool | None = None
    capacity_bytes: float | None = None
    watts: float | None = None
    doubts: tuple[str, ...] = ()
    where: str = ""
    flops: float | None = None

    @property
    def name(self) -> str:
        """The device, with the number of them if they are several, and where it is free."""
        name = self.device if self.count == 1 else f"{self.count} x {self.device}"
        return f"{name} on {self.where}" if self.where else name

    @property
    def kind(self) -> str:
        """Either "estimated", or "measured" for the user's own machine."""
        return "estimated" if self.parts else "measured"

    @property
    def checked(self) -> bool:
        """Whether such work on such a device was compared with published measurements.

        Several devices that work together were not.
        """
        return self.evidence.checked and self.count == 1

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
        """Samples a second of all devices together."""
        return self.batch / self.step_s

    @property
    def hours(self) -> float:
        """Hours of the whole job."""
        return self.samples / self.samples_per_s / 3600

    @property
    def hours_interval(self) -> tuple[float, float]:
        """The hours between which the truth lies in nine cases of ten."""
        return self.hours / self.factor, self.hours * self.evidence.upper

    @property
    def limit(self) -> str:
        """Whether "launches", "memory" or "arithmetic" limits the step; "" where measured."""
        return self.parts.limit if self.parts else ""

    @property
    def energy_kwh(self) -> float | None:
        """Energy at the slow end of the interval, by the data sheet's watts, as an upper bound."""
        return None if self.watts is None else self.hours_interval[1] * self.watts / 1000

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
        why = WHY[self.limit]
        if self.parts and not self.checked:
            why += ", unchecked"
        if self.doubts:
            why += f", unreliable: {self.doubts[0]}"
        return self.name, span(self.hours_interval), money(self), self._fits(), why

    def _fits(self) -> str:
        if self.fits is False:
            return f"no, it needs {format_bytes(self.needed_bytes)}"
        if self.needed_bytes is None and self.parts:
            return "not known"
        needed, capacity = self.needed_bytes or 0.0, self.capacity_bytes or math.inf
        return "just" if needed > BRIM * capacity else "yes"

    def long_cells(self) -> tuple[str, ...]:
        """Return the row of the long table as text."""
        rate = number(self.samples_per_s)
        step = format_seconds(self.step_s)
        needed = format_bytes(self.needed_bytes)
        energy = energy_text(self.energy_kwh)
        each = self._cost_of_thousand()
        return self.name, self.precision, step, rate, each, needed, energy, self._factors()

    def _cost_of_thousand(self) -> str:
        """Return what 1,000 samples cost, in two digits, also where that is less than a cent."""
        if self.cost is None or self.currency is None:
            return "?"
        each = 1000 * self.cost / self.samples
        if each == 0:
            return "free"
        if each >= CENT:
            return amount_text(each, self.currency)
        digits = f"{each:.2g}" if each >= 1e-4 else "< 0.0001"
        return f"{digits} {self.currency}"

    def _factors(self) -> str:
        low, high = f"{self.factor:.2g}", f"{self.evidence.upper:.2g}"
        return low if low == high else f"/{low}, x{high}"


def span(hours: tuple[float, float]) -> str:
    """Return an interval of time in the units that a person would use: "20 to 50 hours".

    Both ends have the same unit where one suits both.
    """
    ends = [3600 * end for end in hours]
    for unit, size, least, most in UNITS:
        first, last = (end / size for end in ends)
        if first >= least and last <= most:
            low, high = number(first), number(last)
            return _with_unit(low, unit) if low == high else f"{low} to {_with_unit(high, unit)}"
    low, high = (span((end, end)) for end in hours)
    return f"{low} to {high}"


def _with_unit(digits: str, unit: str) -> str:
    return f"{digits} {unit}{'' if digits == '1' else 's'}"


def number(value: float) -> str:
    """Return a number with two digits, or all digits before the point: "0.35", "7.2", "1,240"."""
    return f"{value:,.0f}" if value >= 9.95 else f"{value:.2g}"


def energy_text(energy_kwh: float | None) -> str:
    """Return an energy such as "8.2 kWh"."""
    if energy_kwh is None:
        return "?"
    return "less than 0.01 kWh" if energy_kwh < 0.01 else f"{number(energy_kwh)} kWh"


def money(row: Row) -> str:
    """Return what a row costs, as an interval with its currency."""
    if row.price is None or row.cost_interval is None:
        return "no price"
    if row.price.per_hour == 0:
        return "free"
    return amounts(row.cost_interval, row.price.currency)


def amounts(interval: tuple[float, float], currency: str) -> str:
    """Return an interval of money such as "$1.20 to $3.40"."""
    low, high = (amount_text(amount, currency) for amount in interval)
    if interval[0] < CENT / 2 <= interval[1]:
        return f"up to {high}"
    return low if low == high else f"{low} to {high}"


def amount_text(amount: float, currency: str) -> str:
    """Return an amount of money: a sign such as "$" stands before it, a word behind it."""
    if 0 < amount < CENT / 2:
        return f"less than {amount_text(CENT, currency)}"
    digits = f"{amount:,.0f}" if amount >= 9.995 else f"{amount:.2f}"
    return f"{digits} {currency}" if currency.isalpha() else f"{currency}{digits}"
