"""What an estimate found: a row for each device, which shows itself, becomes a table, a picture and
a file.
"""

import html
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from course_utils.estimate.chips import find_chip
from course_utils.estimate.counting import Work
from course_utils.estimate.evidence import Evidence, what_they_stand_on
from course_utils.estimate.memory_model import memory_note
from course_utils.estimate.prices import Price
from course_utils.estimate.steptime import StepTime
from course_utils.text import format_bytes, format_seconds, html_card, text_table

if TYPE_CHECKING:
    import pandas as pd

    from course_utils.figures import Picture

HEADER = (
    "device",
    "precision",
    "step",
    "samples/s",
    "hours",
    "limited by",
    "memory",
    "kWh",
    "cost",
    "kind",
)
# What a table and a file have of a row, and what a file has of the counted work.
FLAT = [
    "device",
    "kind",
    "count",
    "precision",
    "step_s",
    "samples_per_s",
    "hours",
    "limit",
    "factor",
    "needed_bytes",
]
FLAT += ["fits", "energy_kwh", "cost"]
COUNTED = ("flops", "bytes_moved", "kernels", "batch", "parameters", "training", "precision")


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
        needed_bytes: of memory in each device, as `estimate_memory` says; None where it was
            measured.
        fits: whether the device has so much; None where that is not known.
        watts: of all devices together, by the data sheet; None where it does not say.
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
        """What limits the step: "launches", "memory" or "arithmetic"; "" where it was measured."""
        return self.parts.limit if self.parts else ""

    @property
    def energy_kwh(self) -> float | None:
        """Energy of the devices at the data sheet's watts: an upper bound, without the machine
        around them.
        """
        return None if self.watts is None else self.hours * self.watts / 1e3

    @property
    def cost(self) -> float | None:
        """Price of the whole job, or None where there is no price."""
        return None if self.price is None else self.hours * self.count * self.price.per_hour

    def cells(self) -> tuple[str, ...]:
        """Return the row as text."""
        low, high = self.hours_interval
        energy, cost = self.energy_kwh, self.cost
        return (
            self.device if self.count == 1 else f"{self.count} x {self.device}",
            self.precision,
            format_seconds(self.step_s),
            _short(self.samples_per_s),
            f"{_short(self.hours)} ({_short(low)} to {_short(high)})",
            self.limit or "?",
            format_bytes(self.needed_bytes)
            + {None: "", True: ", fits", False: ", too much"}[self.fits],
            "?" if energy is None else _short(energy),
            "?" if cost is None else f"{cost:,.2f}",
            self.kind if self.evidence.checked else f"{self.kind}, unchecked",
        )


@dataclass(frozen=True)
class Estimate:
    """What a training or an inference would take on each device.

    Attributes:
        rows: one for each device, in the order of the question.
        work: the counted step of one device.
    """

    rows: tuple[Row, ...]
    work: Work

    def __getitem__(self, device: str) -> Row:
        known = {row.device: row for row in self.rows}
        name = device if device in known else find_chip(device).name
        if name not in known:
            raise KeyError(
                f"{device!r} is not among the devices of this estimate: {', '.join(known)}"
            )
        return known[name]

    def fastest(self) -> Row | None:
        """Return the device that is done first, of those whose memory is large enough, or None."""
        return min(
            (row for row in self.rows if row.fits is not False),
            key=lambda row: row.hours,
            default=None,
        )

    def cheapest(self, deadline_hours: float | None = None) -> Row | None:
        """Return the device that costs least, of those that have a price and memory enough, or
        None.

        Args:
            deadline_hours: leave out devices whose interval reaches beyond it.
        """
        able = [row for row in self.rows if row.fits is not False and row.cost is not None]
        in_time = [
            row for row in able if deadline_hours is None or row.hours_interval[1] <= deadline_hours
        ]
        return min(in_time, key=lambda row: row.cost or 0.0, default=None)

    def notes(self) -> list[str]:
        """Return what the figures stand on, one sentence each."""
        known = {row.device: row.evidence for row in self.rows if row.parts}
        lines = [f"{self.work!r}.", *what_they_stand_on(known)]
        lines += (
            [memory_note(self.work.training)] if any(row.needed_bytes for row in self.rows) else []
        )
        lines += [
            f"Hours, energy and cost are those of {row.samples:,} samples, all epochs."
            for row in self.rows[:1]
        ]
        prices = [
            f"{row.device} {row.price.per_hour:g} ({row.price.source})"
            for row in self.rows
            if row.price
        ]
        lines += [f"Prices an hour: {', '.join(prices)}."] if prices else []
        return lines

    def __repr__(self) -> str:
        return (
            text_table(HEADER, [row.cells() for row in self.rows]) + "\n" + "\n".join(self.notes())
        )

    def _repr_html_(self) -> str:
        card = html_card("Is it worth it?", HEADER, [row.cells() for row in self.rows])
        notes = "".join(f"<p>{html.escape(note)}</p>" for note in self.notes())
        return f"{card}<details><summary>What these figures stand on</summary>{notes}</details>"

    def to_frame(self) -> "pd.DataFrame":
        """Return one row for each device as a pandas table."""
        import pandas as pd

        return pd.DataFrame([_flat(row) for row in self.rows])

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the list of operations, ready for JSON."""
        counted = {name: getattr(self.work, name) for name in COUNTED}
        return {"counted": counted, "rows": [asdict(row) | _flat(row) for row in self.rows]}

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the estimate as JSON and return where it is."""
        Path(path).write_text(json.dumps(self.to_dict(), indent=1) + "\n", encoding="utf-8")
        return Path(path)

    def plot(self) -> "Picture":
        """Return a picture of the hours on each device, with their intervals."""
        from course_utils.figures import LOOKS, lecture_axes, picture

        axes = lecture_axes("Hours until it is done", "hours (logarithmic)")
        for place, row in enumerate(self.rows):
            look = LOOKS["cpu" if row.kind == "measured" else "cuda"]
            style: dict[str, Any] = {"linewidth": 6, "alpha": 0.4, "solid_capstyle": "round"}
            axes.plot(row.hours_interval, [place, place], color=look["color"], **style)
            axes.plot(
                [row.hours], [place], color=look["color"], marker=look["marker"], markersize=14
            )
        axes.set_xscale("log")
        names = [row.cells()[0] for row in self.rows]
        axes.set_yticks(range(len(names)), names)
        axes.invert_yaxis()
        times = (
            map(format_seconds, (3600 * hours for hours in row.hours_interval)) for row in self.rows
        )
        said = "; ".join(
            f"{name} {low} to {high}" for name, (low, high) in zip(names, times, strict=True)
        )
        return picture(
            axes, f"Time on each device, with the interval in which the truth is expected: {said}."
        )


def _short(number: float) -> str:
    return f"{number:,.0f}" if number >= 10 else f"{number:.2g}"


def _flat(row: Row) -> dict[str, Any]:
    low, high = row.hours_interval
    flat = {name: getattr(row, name) for name in FLAT}
    return flat | {"hours_low": low, "hours_high": high, "checked": row.evidence.checked}
