"""Fine-tuning a language model, from its shape: memory, hours and cost; no torch is needed.

With h hidden, i intermediate, q = heads * head_dim, k = kv_heads * head_dim, L layers, V words,
T tokens in a step (samples times their length) and r the rank of LoRA, in numbers, then in bytes:

    linear     = L * (2*h*q + 2*h*k + 3*h*i)        what LoRA and 4 bits are for
    rest       = V*h (twice, if the head is its own) + (2*L + 1) * h
    adapters   = r * sum of (inputs + outputs) over the linear layers that get one

    weights    = 2 * (linear + rest)                16 bits; "4-bit": nf4 * linear + 2 * rest
    trained    = all weights in "full", else the adapters, each with its gradient and optimizer
    block      = T * (12*h + 4*q + 4*k + 8*i)       what a layer keeps for the backward pass
    logits     = T / chunks * V * bytes_per_logit   of the head and the loss
    activations = T * 2*L*h + max(block, logits)    with checkpointing, else L * block + logits
    temporary  = what Adam makes while it updates, when the activations have gone

    peak       = weights + trained + max(activations, temporary)

A block keeps, a token, two inputs of norms in 32 bits and the two normed ones (12 h), the query and
what attention returns (4 q), key and value (4 k), and four results between the two halves of the
feed-forward network (8 i). Without a gate, linear has 2*h*i and a block keeps 4 i. Scores of
attention are not kept (flash attention). `nf4` is half a byte a weight, an 8-bit scale for 64 of
them, and a 32-bit scale for 256 of those (QLoRA, arXiv 2305.14314).
An optimizer keeps `state` copies of each trained number, and makes `update` copies while it
updates; 8-bit Adam keeps two bytes and their scales (`state_bytes`). `bytes_per_logit` is the one
fitted number: the logits in 16 bits and 32, the loss and a gradient. finetuning.json has all of
these, with the published figures that the last was fitted and tested on: of those that it was not
fitted on, half are met within 7 %, and nine in ten within 21 %.

The time is that of `finetuning_step` in the model of `time.step_time`.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from course_tools.estimate.checks import check_positive
from course_tools.estimate.chips import Chip, find_chip
from course_tools.estimate.counting.work import Work
from course_tools.estimate.finetuning_step import finetuning_step
from course_tools.estimate.language_model import LanguageModel, find_language_model, look_up
from course_tools.estimate.memory.memory_model import capacity_bytes, fits, framework_bytes
from course_tools.estimate.money.free import cut_into_sessions, sessions_text
from course_tools.estimate.money.prices import (
    Price,
    billing,
    free_offers,
    own_price,
    prices_by_device,
)
from course_tools.estimate.row import HERE, amounts, number, span
from course_tools.estimate.time.step_time import Host, step_time
from course_utils.text import format_bytes, text_table

FINETUNING_FILE = Path(__file__).parent / "finetuning.json"


# of the published figures in finetuning.json that `bytes_per_logit` was not fitted on
MEMORY_ERROR = "Of published figures of memory nine in ten are met within 21%."


@dataclass(frozen=True)
class Run:
    """A fine-tuning on one device: estimated.

    Attributes:
        device: the chip's name.
        tokens: of all samples, as often as they are used.
        tokens_per_s: how many it takes per second.
        factor: in nine cases of ten the truth is between a time / factor and a time * factor.
        checked: whether fine-tunings on this device were compared.
        about: what the factor was seen on.
        capacity_bytes: of the device's memory.
        fits: whether a step does, with a margin.
        price: of an hour, or None.
    """

    device: str
    tokens: int
    tokens_per_s: float
    factor: float
    checked: bool
    about: str
    capacity_bytes: float
    fits: bool
    price: Price | None

    @property
    def hours(self) -> float:
        """Hours of all tokens."""
        return self.tokens / self.tokens_per_s / 3600

    @property
    def hours_interval(self) -> tuple[float, float]:
        """The interval of these hours."""
        return self.hours / self.factor, self.hours * self.factor

    @property
    def cost_interval(self) -> tuple[float, float] | None:
        """What these hours cost, or None without a price."""
        if self.price is None:
            return None
        low, high = self.hours_interval
        return low * self.price.per_hour, high * self.price.per_hour

    def rows(self) -> list[tuple[str, str]]:
        """Return the lines of a table: what, and how much."""
        verdict = "it fits" if self.fits else "it does not fit"
        rate = self.tokens_per_s
        found = [
            (self.device, f"{format_bytes(self.capacity_bytes)}, {verdict}"),
            ("tokens/s", f"{number(rate / self.factor)} to {number(rate * self.factor)}"),
            (f"{self.tokens:,} tokens", span(self.hours_interval)),
        ]
        if self.price is not None and self.cost_interval is not None:
            found.append(("cost", amounts(self.cost_interval, self.price.currency)))
        return found


@dataclass(frozen=True)
class FineTuning:
    """The memory of one step of fine-tuning on one GPU, in bytes, and how long a run takes.

    Attributes:
        method: "full", "lora" or "4-bit".
        trained: numbers that are trained.
        weights: of the model, as they are kept, and of LoRA's adapters.
        gradients: of what is trained.
        optimizer: its state, and what it makes while it updates where the peak is there.
        activations: kept for the backward pass, with the logits; 0 where they have gone at the
            peak.
        run: hours and cost on a device, or None where none was named.
        free: the same on one card of each free offer that carries it, by the offer's name.
    """

    method: str
    trained: int
    weights: float
    gradients: float
    optimizer: float
    activations: float
    run: Run | None = None
    free: tuple[tuple[str, Run], ...] = ()

    @property
    def tensors_bytes(self) -> float:
        """Bytes of all tensors at the peak."""
        return self.weights + self.gradients + self.optimizer + self.activations

    @property
    def needed_bytes(self) -> float:
        """What a GPU must have: the tensors, and CUDA and gaps between them."""
        return self.tensors_bytes + framework_bytes(self.tensors_bytes)

    def parts(self) -> dict[str, float]:
        """Return the bytes of each part at the peak, the framework with them."""
        return {
            "weights": self.weights,
            "gradients": self.gradients,
            "optimizer": self.optimizer,
            "activations": self.activations,
            "framework": framework_bytes(self.tensors_bytes),
        }

    def __repr__(self) -> str:
        sizes = self.parts() | {"needed": self.needed_bytes}
        rows = [(name, format_bytes(size)) for name, size in sizes.items()]
        rows += self.run.rows() if self.run else []
        table = text_table(("part, estimated", self.method), rows)
        lines = [MEMORY_ERROR]
        if self.run:
            lines.append(f"The intervals of time: {self.run.about}.")
            lines += [_free_text(name, run) for name, run in self.free]
            if self.run.price is not None and self.run.price.per_hour:
                lines.append(billing([self.run.price.provider]))
        return "\n".join([table, *lines])

    def to_dict(self) -> dict[str, Any]:
        """Return everything, ready for JSON."""
        found = asdict(self) | {"needed_bytes": self.needed_bytes}
        if self.run:
            found["run"] |= {
                "hours": self.run.hours,
                "hours_interval": self.run.hours_interval,
                "cost_interval": self.run.cost_interval,
            }
        return found


def estimate_finetuning(
    model: str | Path | Mapping[str, Any] | LanguageModel,
    method: str = "lora",
    *,
    batch: int = 1,
    length: int = 2048,
    rank: int = 16,
    targets: Sequence[str] | None = None,
    optimizer: str = "adam",
    trained_bytes: int = 4,
    checkpointing: bool = True,
    chunks: int = 1,
    device: str | Chip | None = None,
    tokens: int = 1_000_000,
    compiled: bool = False,
    price_per_hour: float | None = None,
    currency: str = "$",
) -> FineTuning:
    """Estimate memory, hours and cost of fine-tuning a language model on one GPU.

        >>> found = estimate_finetuning("Llama 3.1 8B", "4-bit", device="RTX 4090", tokens=10**7)
        >>> found.run.fits, 0.5 < found.run.hours < 2
        (True, True)

    Args:
        model: a name in `language_models()`, or your own: the path of its config.json, what that
            holds, or its shape.
        method: "full" trains all weights, "lora" two narrow matrices beside each target, over
            frozen weights in 16 bits, "4-bit" the same over frozen weights in 4 bits (QLoRA).
        batch: samples in a step.
        length: tokens of a sample.
        rank: of LoRA's matrices.
        targets: the linear layers that get them, of "q", "k", "v", "o", "gate", "up", "down", or
            None for all.
        optimizer: "adam" or "adamw" as PyTorch runs them on a GPU, "fused", "adam8bit" or "sgd".
        trained_bytes: of a number that is trained: 4 where it is kept in 32 bits, as mixed
            precision and PEFT do, or 2 where it is in 16 bits, with its gradient and its moments.
        checkpointing: keep each block's input, and compute the rest again.
        chunks: pieces in which the head and the loss are computed: 1 in Transformers, 8 in
            torchtune.
        device: the name of a chip such as "T4", or your own `Chip`, for hours and cost; or None.
        tokens: of all samples, as often as they are used.
        compiled: whether the model goes through torch.compile.
        price_per_hour: of the device; a list price stands in where there is one.
        currency: of your price.

    Raises:
        ValueError: a name is unknown, a number is not positive, or a price is negative.
    """
    counts = {"batch": batch, "length": length, "rank": rank, "tokens": tokens, "chunks": chunks}
    for name, value in counts.items():
        check_positive(name, value)
    shape = find_language_model(model)
    numbers = finetuning_evidence()
    kept = look_up("optimizer", optimizer, numbers["optimizers"])
    frozen = {  # bytes of the weights that are not trained
        "full": 0,
        "lora": 2 * (shape.linear + shape.rest),
        "4-bit": numbers["nf4_bytes"] * shape.linear + 2 * shape.rest,
    }
    frozen_bytes = look_up("method", method, frozen)
    trained = shape.linear + shape.rest
    if method != "full":
        chosen = [targets] if isinstance(targets, str) else targets or shape.shapes
        trained = shape.adapters(rank, chosen)
    in_step = batch * length
    block = shape.block_bytes(in_step)
    logits = in_step / chunks * shape.vocabulary * numbers["bytes_per_logit"]
    activations = shape.layers * block + logits
    if checkpointing:  # the logits have gone when the first block is computed again
        activations = in_step * 2 * shape.layers * shape.hidden + max(block, logits)
    state = trained * kept.get("state_bytes", trained_bytes * kept.get("state", 0))
    update = trained * trained_bytes * kept["update"]
    in_update = update > activations  # when the peak comes
    memory = FineTuning(
        method=method,
        trained=trained,
        weights=frozen_bytes + trained_bytes * trained,
        gradients=trained_bytes * trained,
        optimizer=state + update if in_update else state,
        activations=0 if in_update else activations,
    )
    if device is None:
        return memory
    work = finetuning_step(
        shape,
        method,
        numbers["step"],
        batch=batch,
        length=length,
        trained=trained,
        checkpointing=checkpointing,
        trained_bytes=trained_bytes,
        state=state / trained / trained_bytes,
    )
    chip = find_chip(device)
    price = prices_by_device(None, HERE, currency, [chip]).get(chip.name)
    if price_per_hour is not None:
        price = own_price(chip.name, price_per_hour, currency)
    asked = method, tokens, in_step, compiled, memory.needed_bytes
    free = []
    for offer in free_offers():
        none = Price(0.0, f"free, {offer['what']}, {offer['date']}, {offer['source']}")
        each = _run(work, find_chip(offer["devices"][0]), *asked, none)
        most = offer["week_hours"] or offer["session_hours"]
        if each.fits and each.hours_interval[1] <= most:
            free.append((offer["name"], each))
    return replace(memory, run=_run(work, chip, *asked, price), free=tuple(free))


def _free_text(name: str, run: Run) -> str:
    offer = next(one for one in free_offers() if one["name"] == name)
    cut = cut_into_sessions(run.hours_interval[1], 1, offer["session_hours"])
    time = span(run.hours_interval)
    return f"Free: a {run.device} on {name} takes {time}, in {sessions_text(cut)}."


def _run(
    work: Work,
    chip: Chip,
    method: str,
    tokens: int,
    in_step: int,
    compiled: bool,
    needed_bytes: float,
    price: Price | None,
) -> Run:
    known = finetuning_evidence()
    host = Host(0.0, known["step"]["launch_s"], "fitted on published fine-tunings")
    on_chip = replace(work, precision=chip.at("amp"))
    seconds = step_time(on_chip, chip, host=host, compiled=compiled).total_s
    evidence = next(
        one
        for one in known["evidence"]
        if one["method"] in (None, method)
        and (one["devices"] is None or chip.name in one["devices"])
        and in_step >= one["tokens"]
    )
    return Run(
        device=chip.name,
        tokens=tokens,
        tokens_per_s=in_step / seconds,
        factor=evidence["factor"],
        checked=evidence["devices"] is not None,
        about=evidence["about"],
        capacity_bytes=capacity_bytes(chip),
        fits=fits(needed_bytes, capacity_bytes(chip), "formula_margin"),
        price=price,
    )


def published_speeds(used_for: str) -> list[tuple[float, float]]:
    """Return for each published speed the time that is estimated, as a share of it, and the factor.

    Args:
        used_for: "fit" or "test", as for `published_errors`.
    """
    found = []
    for row in finetuning_evidence()["published_speed"]:
        run = {
            name: row[name] for name in row if name not in ("source", "tokens_per_s", "used_for")
        }
        if row["used_for"] == used_for:
            estimated = estimate_finetuning(**run).run
            assert estimated is not None
            found.append((row["tokens_per_s"] / estimated.tokens_per_s, estimated.factor))
    return found


def published_errors(used_for: str) -> list[float]:
    """Return by how much the estimates of published figures are wrong, as shares of the figures.

    Args:
        used_for: "fit" or "test": `bytes_per_logit` was chosen on the one half, without the other.
    """
    beside = ("source", "gb", "used_for", "counts")  # all else is what was run
    errors = []
    for row in finetuning_evidence()["published"]:
        if row["used_for"] != used_for:
            continue
        run = {name: value for name, value in row.items() if name not in beside}
        estimated = estimate_finetuning(**run)
        only_tensors = row.get("counts") == "tensors"
        size = estimated.tensors_bytes if only_tensors else estimated.needed_bytes
        errors.append(abs(size / 1e9 / row["gb"] - 1))
    return errors


@cache
def finetuning_evidence() -> dict[str, Any]:
    """Return finetuning.json: the fitted numbers and the published figures."""
    return dict(json.loads(FINETUNING_FILE.read_text(encoding="utf-8")))
