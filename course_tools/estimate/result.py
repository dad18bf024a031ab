"""The result of an estimate: a sentence, a row for each device, a table and a file."""

import html
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from course_tools.estimate.chips import find_chip
from course_tools.estimate.counted import CountedMemory
from course_tools.estimate.counting.work import Work
from course_tools.estimate.memory.memory_model import memory_note
from course_tools.estimate.memory.memory_result import Memory
from course_tools.estimate.money.advice import (
    advice,
    in_one_currency,
    page_link,
    told_apart,
)
from course_tools.estimate.money.free import free_sessions
from course_tools.estimate.money.prices import billing
from course_tools.estimate.row import Question, Row, amount_text
from course_tools.estimate.time.error_factor import in_one_sentence
from course_tools.estimate.time.step_time import cloud_host, fitted
from course_utils.text import html_card, text_table

if TYPE_CHECKING:
    import pandas as pd

HEADER = ("device", "time", "cost", "fits", "why")
# of a row, in `to_frame` and in the file
FIGURES: tuple[str, ...] = (
    "device",
    "kind",
    "count",
    "precision",
    "hours",
    "cost",
    "fits",
    "needed_bytes",
)
FIGURES += ("limit", "step_s", "samples_per_s", "factor", "energy_kwh")
FORMAT = "course_tools.estimate 3"


@dataclass(frozen=True)
class Estimate:
    """The time and money of a training or an inference on each device.

    Attributes:
        rows: one for each device, in the order of the question.
        work: the counted step of one device.
        question: what was asked.
        memory: what fills the memory of one device, as `estimate_memory` says; of a
            counted network, how much.
        free: the same job on what Colab and Kaggle give away, where one device was asked about.
    """

    rows: tuple[Row, ...]
    work: Work
    question: Question
    memory: Memory | CountedMemory
    free: tuple[Row, ...] = ()

    def __getitem__(self, device: str) -> Row:
        known = {name: row for row in reversed(self.rows) for name in (row.name, row.device)}
        name = device if device in known else find_chip(device).name
        if name not in known:
            raise KeyError(
                f"{device!r} is not among the devices of this estimate: {', '.join(known)}"
            )
        return known[name]

    def cheapest(self, deadline_hours: float | None = None) -> Row | None:
        """Return the device that costs least of those with a price and memory enough, or None.

        Prices in another currency than the user's are left out.

        Args:
            deadline_hours: leave out devices whose interval reaches beyond it.
        """
        able = [row for row in in_one_currency(self.rows) if row.fits is not False]
        if deadline_hours is not None:
            able = [row for row in able if row.hours_interval[1] <= deadline_hours]
        return min(able, key=lambda row: row.cost or 0.0, default=None)

    @property
    def answer(self) -> str:
        """The answer in a sentence or two."""
        return advice(self.rows, self.question.deadline_hours, self.free)

    def notes(self) -> list[str]:
        """Return what has to be known beside the table, one sentence each."""
        question = self.question
        estimated = [row for row in self.rows if row.parts]
        known = {row.name: replace(row.evidence, checked=row.checked) for row in estimated}
        lines = [in_one_sentence(known)] if known else []
        if question.count > 1 and known:
            lines.append("These factors are of one device; several together were not checked.")
        lines += told_apart(self.rows)
        if question.training and not self.work.loss_counted:
            lines.append("The loss is not counted: none was given, and the model returns none.")
        if question.shards > 1 and question.training:
            lines.append(
                f"{question.shards} devices share parameters, gradients and the optimizer's state "
                f"(FSDP), and exchange 1.5 times as much as DDP."
            )
        lines += [f"Assumed: {sentence}." for sentence in self.work.assumed]
        lines.append(_taken_for(self.work, question))
        beside, hosts = (fitted()["factors"][name] for name in ("loops", "hosts"))
        if any(hosts["about"] in one.reasons for one in known.values()):
            lines.append(_sentence(hosts["about"]))
        if any(beside["about"] in one.reasons for one in known.values()):
            lines.append(
                "What a training loop does beside the step (logging, loss.item(), clipping, "
                f"augmentation, an average of the weights) is not counted: a factor of "
                f"{beside['factor']} for it is in the upper end."
            )
        unpriced = [row.name for row in estimated if row.price is None]
        if unpriced and len(unpriced) < len(estimated):
            lines.append(f"Not compared by cost, for want of a price: {', '.join(unpriced)}.")
        lines.append("Reading data is not included.")
        if any(row.parts and row.cost for row in self.rows):
            lines.append("Starting, uploading and idling are billed too.")
        link = page_link(self.to_dict())
        return [*lines, f"The same question on the page: {link}"] if link else lines

    def details(self) -> str:
        """Return everything else as text: steps, memory, energy, prices, sources, free sessions."""
        question = self.question
        energy = "energy at most"  # by the data sheet's watts
        header = ("device", "precision", "step", "samples/s", "per 1,000", "memory", energy)
        table = text_table((*header, "factor"), [row.long_cells() for row in self.rows])
        estimated = [row for row in self.rows if row.parts]
        half = self.work.precision in ("fp16", "bf16")  # counted alike, and each row says its own
        work = replace(self.work, precision="16 bits") if half else self.work
        stands_on = memory_note(self.work.training, question.optimizer)
        lines = [f"{work!r}.", *_unaligned(work), *_hosts(question, estimated)]
        lines += [stands_on] if self.memory.needed_bytes is not None else []
        lines += _reasons(estimated)
        lines += [f"{row.name}: {doubt}" for row in self.rows for doubt in row.doubts]
        for row in self.rows:
            if row.price:
                price = amount_text(row.price.per_hour, row.price.currency)
                lines.append(f"{row.device}: {price} an hour ({row.price.source}).")
        epochs = question.epochs if question.training else None
        rented = [row.price.provider for row in self.rows if row.price and row.parts and row.cost]
        lines += [billing(rented)] if rented else []
        lines += filter(None, (free_sessions(row, epochs) for row in self.free))
        return "\n".join([table, *lines])

    def __repr__(self) -> str:
        table = text_table(HEADER, [row.cells() for row in (*self.free, *self.rows)])
        return "\n".join([self.answer, "", table, *self.notes()])

    def _repr_html_(self) -> str:
        card = html_card(self.answer, HEADER, [row.cells() for row in (*self.free, *self.rows)])
        first, *others = self.notes()
        notes = "".join(f"<p>{html.escape(text)}</p>" for text in (first, " ".join(others)))
        more = html.escape(self.details())
        details = f"<details><summary>Details</summary><pre>{more}</pre></details>"
        # or what stands between two dollar signs would be typeset as a formula
        return f'<div class="mathjax_ignore tex2jax_ignore">{card}{notes}{details}</div>'

    def to_frame(self) -> "pd.DataFrame":
        """Return one row for each device as a pandas table."""
        import pandas as pd

        return pd.DataFrame([_flat(row) for row in self.rows])

    def to_dict(self) -> dict[str, Any]:
        """Return the estimate ready for JSON, without the list of operations.

        Its parts::

            format      "course_tools.estimate 3"
            question    the fields of `Question`
            counted     the fields of `work.Work`: for each kind of operation flops, bytes_moved and
                        kernels of one step at the question's batch
            memory      what `Memory.to_dict` gives: lines of bytes over the batch
            rows        for each device what `to_frame` has, with the three parts of a step, the
                        evidence and the price
            free        the same for what Colab and Kaggle give away
        """
        return {
            "format": FORMAT,
            "question": asdict(self.question),
            "counted": self.work.to_dict(),
            "memory": self.memory.to_dict(),
            "rows": [asdict(row) | _flat(row) for row in self.rows],
            "free": [asdict(row) | _flat(row) for row in self.free],
        }

    def to_json(self) -> str:
        """Return `to_dict` as text."""
        return json.dumps(self.to_dict(), indent=1)


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def _reasons(rows: Sequence[Row]) -> list[str]:
    """Return why each estimate may be off, with the devices where it is not all of them."""
    names: dict[str, list[str]] = {}
    for row in rows:
        for reason in row.evidence.reasons:
            names.setdefault(reason, []).append(row.name)
    return [
        _sentence(reason)
        if len(names[reason]) == len(rows)
        else f"{', '.join(names[reason])}: {reason}."
        for reason in names
    ]


def _hosts(question: Question, rows: Sequence[Row]) -> list[str]:
    """Return what launches the kernels, with the devices that stand beside it."""
    if question.host != "cloud":
        return [f"Host: {question.host}."]
    names: dict[str, list[str]] = {}
    for row in rows:
        names.setdefault(cloud_host(row.device).source, []).append(row.name)
    return [
        f"Host of {', '.join(beside)}: a typical one of clouds, {source}."
        for source, beside in names.items()
    ]


def _taken_for(work: Work, question: Question) -> str:
    """Return in a sentence what the step was taken for where PyTorch leaves a choice."""
    how = "with torch.compile" if question.compiled else "without torch.compile"
    if work.convolution.flops or work.depthwise.flops or work.convolution3d.flops:
        how += f", images with their channels {'last' if work.channels_last else 'first'}"
        if work.precision == "fp32":
            how += ", convolutions in fp32 (PyTorch takes tf32 for them where a card has it)"
    return f"Taken for a step {how}."


def _unaligned(work: Work) -> list[str]:
    """Return a sentence on matrix products that tensor cores do not like, if they matter."""
    share = work.unaligned / max(1.0, work.flops)
    if share < 0.1:
        return []
    longer = fitted()["numbers"]["unaligned"]["value"]
    return [
        f"{share:.0%} of the operations are matrix products with a size that is odd, such as "
        f"50,257 words. Tensor cores take {longer:.2g} times as long for them, so round such sizes "
        f"up, best to a multiple of 64."
    ]


def _flat(row: Row) -> dict[str, Any]:
    flat = {name: getattr(row, name) for name in FIGURES}
    flat["hours_low"], flat["hours_high"] = row.hours_interval
    flat["cost_low"], flat["cost_high"] = row.cost_interval or (None, None)
    return flat | {"currency": row.currency, "checked": row.checked}
