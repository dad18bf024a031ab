"""The answers to one question: a sentence, a row for each machine, a table and a file."""

import html
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, TypeVar

from course_tools.estimate.advice import advice, the, too_close_to_call
from course_tools.estimate.answer import Answer
from course_tools.estimate.checks import check_deadline, check_positive, is_amount
from course_tools.estimate.chips import find_chip
from course_tools.estimate.choice import choose, comparable, least
from course_tools.estimate.demand import Demand
from course_tools.estimate.free import free_sessions
from course_tools.estimate.machine import HERE, Machine
from course_tools.estimate.prices import OFFERS, Price, billing, free_offers, prices_by_device
from course_tools.estimate.time.error_factor import ErrorFactor, in_one_sentence
from course_tools.estimate.words import amount_text, listed, sentence, span
from course_utils.tables import html_card, text_table, wrapped
from course_utils.units import format_bytes

FORMAT = "course_tools.estimate 4"
HEADER = ("device", "time", "cost", "fits", "why")
LONG_HEADER = ("device", "precision", "step", "per second", "per 1,000", "memory", "factor")
Asked = TypeVar("Asked", bound=Demand, covariant=True)  # such as NetworkDemand, Tuning or Serving


@dataclass(frozen=True)
class Answers(Generic[Asked]):
    """The time and money of a job on each machine.

    Attributes:
        rows: an answer for each machine, in the order of the question.
        demand: what a step asks of any machine; its `memory` says what fills that of one device.
        samples: in one epoch.
        epochs: how many times all samples are used.
        deadline_hours: when it must be done, or None.
    """

    rows: tuple[Answer, ...]
    demand: Asked
    samples: float
    epochs: int
    deadline_hours: float | None

    def __getitem__(self, device: str) -> Answer:
        known = {name: row for row in reversed(self.rows) for name in (row.name, row.device)}
        name = device if device in known else find_chip(device).name
        if name not in known:
            raise KeyError(
                f"{device!r} is not among the devices of this estimate: {', '.join(known)}"
            )
        return known[name]

    @cached_property
    def free(self) -> tuple[Answer, ...]:
        """The same job on what Colab and Kaggle give away, of those that give as many devices as
        were asked about; where one was, on all of them.
        """
        counts = {row.count for row in self.rows if row.machine} or {1}
        found = []
        for offer in free_offers():
            if counts != {1} and offer["count"] not in counts:
                continue
            price = Price(0.0, f"free, {offer['what']}, {offer['date']}, {offer['source']}")
            for name in offer["devices"]:
                machine = Machine(name, offer["count"] if self.demand.together else 1)
                asked = self.demand, machine, self.samples, self.epochs
                try:
                    found.append(answer_on(*asked, price, offer["name"]))
                except ValueError:  # it does not have the precision
                    continue
        return tuple(found)

    def cheapest(self, deadline_hours: float | None = None) -> Answer | None:
        """Return the machine with a price and memory enough that costs least, at the dear end of
        its interval, or None. An unchecked one has to cost less by a quarter.

        Prices that cannot be compared with the others are left out.

        Args:
            deadline_hours: leave out machines whose interval reaches beyond it.
        """
        able = comparable([row for row in self.rows if row.fits is not False])
        if deadline_hours is not None:
            able = [row for row in able if row.hours_interval[1] <= deadline_hours]
        return least(able, "cost") if able else None

    @property
    def answer(self) -> str:
        """The answer in a sentence or two."""
        text = self.demand.first_line(self.rows) or advice(
            self.rows,
            self.deadline_hours,
            self.free,
            takes_own=self.demand.together,
            aside=self._in_larger_batches(),
        )
        if any(row.fits is not False for row in self.rows):
            return text
        return f"{text} {self._way_out()}".rstrip()

    def _in_larger_batches(self) -> str:
        """Return what the recommended device takes with more at once, if that is usual, or ""."""
        row, _, _ = choose(self.rows, self.deadline_hours, self.free)
        machine = row.machine if row else None
        larger = self.demand.larger(machine, self.samples) if machine else None
        if row is None or machine is None or larger is None:
            return ""
        found = answer_on(larger, machine, self.samples, self.epochs, row.price, row.where)
        takes = f"it takes {span(found.hours_interval)} on {the(row)}"
        costs = f" and costs {found.cost_text(bare=True)}" if found.cost else ""
        return f"Answered {larger.batch} at a time, {takes}{costs}."

    def _way_out(self) -> str:
        """Return the mildest change with which the step fits one of the machines."""
        machines = [row.machine for row in self.rows if row.machine]
        for words, smaller in self.demand.smaller():
            steps = {machine.name: smaller.on(machine) for machine in machines}
            fitting = [name for name, step in steps.items() if step.fits]
            if fitting:
                needed = format_bytes(steps[fitting[0]].needed_bytes)
                return f"With {words} it needs {needed} and fits {listed(fitting)}."
        return ""

    def notes(self) -> list[str]:
        """Return what has to be known beside the table, one sentence each."""
        estimated = [row for row in self.rows if row.machine]
        known = {row.name: row.evidence for row in estimated}
        job, *others = self.demand.notes(self.rows)
        lines = [job, in_one_sentence(known)] if known else [job]
        lines += [*too_close_to_call(self.rows), *others]
        for machine in (row.machine for row in estimated if row.machine):
            if machine.others:
                lines.append(f"Taken: {machine.chip.name}. There is also {listed(machine.others)}.")
        like = comparable(self.rows)
        unlike = [f"{row.name} ({_offer(row)})" for row in estimated if row not in like]
        if unlike and len(unlike) < len(estimated):
            lines.append(f"Not compared by cost: {', '.join(unlike)}.")
        hourly = [
            f"{row.device} {amount_text(row.price.per_hour, row.price.currency)} ({_offer(row)})"
            for row in estimated
            if row.price and row.cost
        ]
        if hourly:
            start = "Prices per hour, on demand in a data centre unless it says otherwise"
            billed = "Starting, uploading and idling are billed too."
            lines.append(f"{start}: {', '.join(dict.fromkeys(hourly))}. {billed}")
        return lines

    def details(self) -> str:
        """Return everything else as text: steps, memory, prices, sources, free sessions."""
        estimated = [row for row in self.rows if row.machine]
        table = text_table(LONG_HEADER, [row.long_cells() for row in self.rows])
        lines = [*self.demand.details(self.rows), *_reasons(estimated)]
        lines += [f"{row.name}: {doubt}" for row in self.rows for doubt in row.doubts]
        for row in self.rows:
            if row.price:
                price = amount_text(row.price.per_hour, row.price.currency)
                lines.append(f"{row.device}: {price} per hour ({row.price.source}).")
        rented = [row.price.provider for row in estimated if row.price and row.cost]
        in_dollars = [row.device for row in estimated if row.price and row.price.currency == "$"]
        lines += billing(rented, in_dollars) if rented else []
        epochs = self.epochs if self.demand.training else None
        lines += filter(None, (free_sessions(row, epochs) for row in self.free))
        return "\n".join([table, *map(wrapped, lines)])

    def __repr__(self) -> str:
        table = text_table(HEADER, [row.cells() for row in (*self.free, *self.rows)])
        return "\n".join([wrapped(self.answer), "", table, *map(wrapped, self.notes())])

    def _repr_html_(self) -> str:
        card = html_card(self.answer, HEADER, [row.cells() for row in (*self.free, *self.rows)])
        first, *others = self.notes()
        notes = "".join(f"<p>{html.escape(text)}</p>" for text in (first, " ".join(others)))
        more = html.escape(self.details())
        details = f"<details><summary>Details</summary><pre>{more}</pre></details>"
        # or what stands between two dollar signs would be typeset as a formula
        return f'<div class="mathjax_ignore tex2jax_ignore">{card}{notes}{details}</div>'

    def to_dict(self) -> dict[str, Any]:
        """Return the answers ready for JSON, without the list of operations.

        Its parts::

            format      "course_tools.estimate 4"
            question    the job: batch, precision, samples, epochs, deadline_hours and so on
            counted     of a network, the fields of `work.Work`: for each kind of operation flops,
                        bytes_moved and kernels of one step at the question's batch
            memory      of a network, what `Memory.to_dict` gives: lines of bytes over the batch
            rows        for each device what `Answer.figures` has, with the price
            free        the same for what Colab and Kaggle give away
        """
        demand = self.demand.to_dict()
        job: dict[str, Any] = {"samples": self.samples, "epochs": self.epochs}
        job |= {"deadline_hours": self.deadline_hours}
        job["count"] = max((row.count for row in self.rows), default=1)
        return demand | {
            "format": FORMAT,
            "question": demand["question"] | job,
            "rows": [_for_json(row) for row in self.rows],
            "free": [_for_json(row) for row in self.free],
        }

    def to_json(self) -> str:
        """Return `to_dict` as text."""
        return json.dumps(self.to_dict(), indent=1)


def answer_on(
    demand: Demand,
    machine: Machine,
    samples: float,
    epochs: int,
    price: Price | None,
    where: str = "",
) -> Answer:
    """Return the answer for one machine.

    Args:
        demand: what a step asks.
        machine: that would do it.
        samples, epochs: of the job; see `Answers`.
        price: of an hour of one device.
        where: the free offer that the machine belongs to, or "".
    """
    step = demand.on(machine)
    batch = demand.batch * machine.count
    flops = demand.flops
    if flops is not None:  # of the whole job, in which an epoch takes one step at least
        flops *= epochs * max(samples, batch) / demand.batch
    return Answer(
        machine=machine,
        precision=step.precision,
        step_s=step.seconds,
        batch=batch,
        samples=samples,
        epochs=epochs,
        price=price,
        evidence=step.evidence,
        parts=step.parts,
        needed_bytes=step.needed_bytes,
        fits=step.fits,
        where=where,
        flops=flops,
        tokens_per_s=step.tokens_per_s,
    )


def answer_all(
    make: Callable[[], Asked],
    machines: Sequence[Machine],
    *,
    samples: float,
    epochs: int,
    deadline_hours: float | None,
    prices: Any,
    currency: str,
    this_machine: Any = None,
) -> Answers[Asked]:
    """Return the answers of some machines; what is asked of them is checked before `make` runs.

    Args:
        make: returns the demand.
        machines: those that are asked about.
        samples, epochs, deadline_hours: of the job; see `Answers`.
        prices, currency: as for `prices_by_device`.
        this_machine: seconds of a step that was measured here, or a `Timing`; or None.
    """
    if not machines and this_machine is None:
        raise ValueError(
            "devices is empty. Name at least one chip: `python -m course_tools.estimate --help` "
            "lists all."
        )
    check_deadline(deadline_hours)
    epochs = check_positive("epochs", epochs)
    known = prices_by_device(prices, HERE, currency, [machine.chip for machine in machines])
    demand = make()
    rows = [
        answer_on(demand, machine, samples, epochs, known.get(machine.chip.name))
        for machine in machines
    ]
    if this_machine is not None:
        rows.append(_measured(this_machine, demand.batch, samples, epochs, known[HERE]))
    return Answers(tuple(rows), demand, samples, epochs, deadline_hours)


def _measured(timing: Any, batch: int, samples: float, epochs: int, price: Price) -> Answer:
    step_s = getattr(timing, "median_s", timing)
    if not is_amount(step_s):
        raise ValueError(
            f"this_machine is the seconds of a step that you measured, or a Timing, "
            f"but got {timing!r}."
        )
    high = getattr(timing, "interval_s", (step_s, step_s))[1]
    return Answer(
        machine=None,
        precision="as measured",
        step_s=float(step_s),
        batch=batch,
        samples=samples,
        epochs=epochs,
        price=price,
        evidence=ErrorFactor(high / step_s, checked=True, reasons=()),
        doubts=tuple(getattr(timing, "warnings", ())),
    )


def _reasons(rows: Sequence[Answer]) -> list[str]:
    """Return why each estimate may be off, with the devices where it is not all of them."""
    names: dict[str, list[str]] = {}
    for row in rows:
        for reason in row.evidence.reasons:
            names.setdefault(reason, []).append(row.name)
    return [
        sentence(reason)
        if len(names[reason]) == len(rows)
        else f"{', '.join(names[reason])}: {reason}."
        for reason in names
    ]


def _offer(row: Answer) -> str:
    """Return who asks the price of a row, and of which kind of offer where it is not on demand."""
    return "no price" if row.price is None else row.price.offer.removesuffix(f", {OFFERS[0]}")


def _for_json(row: Answer) -> dict[str, Any]:
    parts = vars(row.parts) if row.parts else None
    price = vars(row.price) if row.price else None
    where = {"where": row.where, "doubts": list(row.doubts)}
    return row.figures() | {"parts": parts, "price": price} | where
