"""What was asked, and the answer for one device."""

from dataclasses import dataclass

from course_utils.estimate.evidence import Evidence
from course_utils.estimate.prices import Price
from course_utils.estimate.step_time import StepTime
from course_utils.text import format_bytes, format_seconds

HERE = "this machine"
UNITS = (("day", 86400), ("hour", 3600), ("minute", 60), ("second", 1))
WHY = {
    "launches": "limited by launching kernels",
    "memory": "limited by its memory bandwidth",
    "arithmetic": "limited by its arithmetic",
    "": "measured",
}


@dataclass(frozen=True)
class Question:
    """What was asked, beside the model and the devices.

    Attributes:
        batch: samples in a step on each device.
        precision: as it was asked for, such as "amp".
        training: whether it is a training; else an inference.
        optimizer: its name.
        compiled: whether torch.compile is used.
        samples, epochs: of the job.
        deadline_hours: when it must be done, or None.
        count: devices that work together.
        link: what connects them, or None for each chip's own.
        host: what launches the kernels: "cloud", or where its speed was measured.
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
        price: of an hour of one device, or None where nobody gave one.
        evidence: what the interval stands on.
        parts: what the step consists of, or None where it was measured.
        needed_bytes: of memory in each device; None where it was measured.
        fits: whether the device has so much; None where that is not known.
        watts: of all devices together, by the data sheet; None where it does not say.
        doubts: why a measured figure is unreliable, one sentence each.
    """

    device: str
    count: int
    precision: str
    step_s: float
    batch: int
    samples: int
    price: Price | None
    evidence: Evidence
    parts: StepTime | None = None
    needed_bytes: float | None = None
    fits: bool | None = None
    watts: float | None = None
    doubts: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The device, with the number of them where they are several."""
        return self.device if self.count == 1 else f"{self.count} x {self.device}"

    @property
    def kind(self) -> str:
        """Either "estimated", or "measured" for the user's own machine."""
        return "estimated" if self.parts else "measured"

    @property
    def factor(self) -> float:
        """The truth lies between step_s / factor and step_s * factor in nine cases of ten."""
        return self.evidence.factor

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
        return self.hours / self.factor, self.hours * self.factor

    @property
    def limit(self) -> str:
        """Whether "launches", "memory" or "arithmetic" limits the step; "" where measured."""
        return self.parts.limit if self.parts else ""

    @property
    def energy_kwh(self) -> float | None:
        """Energy at the data sheet's watts, an upper bound without the machine around them."""
        return None if self.watts is None else self.hours * self.watts / 1000

    @property
    def cost(self) -> float | None:
        """Price of the whole job, or None where there is no price."""
        return None if self.price is None else self.hours * self.count * self.price.per_hour

    @property
    def cost_interval(self) -> tuple[float, float] | None:
        """The cost between which the truth lies in nine cases of ten."""
        cost = self.cost
        return None if cost is None else (cost / self.factor, cost * self.factor)

    def cells(self) -> tuple[str, ...]:
        """Return the row of the short table as text."""
        needed = format_bytes(self.needed_bytes)
        fits = {None: "?", True: "yes", False: f"no, it needs {needed}"}[self.fits]
        why = WHY[self.limit]
        if self.parts and not self.evidence.checked:
            why += ", unchecked"
        if self.doubts:
            why += f", unreliable: {self.doubts[0]}"
        return self.name, span(self.hours_interval), money(self), fits, why

    def long_cells(self) -> tuple[str, ...]:
        """Return the row of the long table as text."""
        rate = f"{self.samples_per_s:,.3g}"
        step = format_seconds(self.step_s)
        needed = format_bytes(self.needed_bytes)
        energy = "?" if self.energy_kwh is None else f"{self.energy_kwh:.2g} kWh"
        return self.name, self.precision, step, rate, needed, energy, f"{self.factor:.2g}"


def span(hours: tuple[float, float]) -> str:
    """Return an interval of time in the unit that a person would use: "20 to 50 hours"."""
    low, high = (3600 * number for number in hours)
    middle = (low * high) ** 0.5
    unit, size = next(((u, s) for u, s in UNITS if middle >= 2 * s), UNITS[-1])
    first, last = _short(low / size), _short(high / size)
    if first == last:
        return f"{first} {unit}{'' if first == '1' else 's'}"
    return f"{first} to {last} {unit}s"


def money(row: Row) -> str:
    """Return what a row costs, as an interval with its currency."""
    if row.price is None or row.cost_interval is None:
        return "?"
    if row.price.per_hour == 0:
        return "free"
    low, high = (amount_text(amount, row.price.currency) for amount in row.cost_interval)
    return low if low == high else f"{low} to {high}"


def _short(number: float) -> str:
    return f"{number:,.0f}" if number >= 10 else f"{number:.2g}"


def amount_text(amount: float, currency: str) -> str:
    """Return an amount of money: a sign such as "$" stands before it, a word behind it."""
    number = f"{amount:,.0f}" if amount >= 10 else f"{amount:.2f}"
    return f"{number} {currency}" if currency.isalpha() else f"{currency}{number}"
