"""Fine-tuning a language model, from its shape: memory, hours and cost; no torch is needed.

With h hidden, i intermediate, q = heads * head_dim, k = kv_heads * head_dim, L layers, V words,
T tokens in a step (samples times their length) and r the rank of LoRA, in numbers, then in bytes:

    linear     = L * (2*h*q + 2*h*k + 3*h*i)        what LoRA and 4 bits are for
    rest       = V*h (twice, if the head is its own) + (2*L + 1) * h
    adapters   = r * sum of (inputs + outputs) over the linear layers that get one

    weights    = 2 * (linear + rest)                16 bits; "4-bit": nf4 * linear + e * rest
    trained    = all weights in "full", else the adapters, each with its gradient and optimizer
    block      = T * (12*h + 4*q + 4*k + 8*i)       what a layer keeps for the backward pass; with
                 adapters, 2 more bytes for each input of a target
    logits     = T / chunks * V * bytes_per_logit   of the head and the loss
    activations = T * s*L*h + max(block, logits)    with checkpointing, else L * block + logits
    temporary  = what Adam makes while it updates, when the activations have gone

    peak       = weights + trained + max(activations, temporary)

An optimizer that runs in the backward pass frees each gradient at once, so that only the largest
is held, and makes nothing while it updates. A paged one keeps its state in the computer's memory.

A block keeps, a token, two inputs of norms in 32 bits and the two normed ones (12 h), the query and
what attention returns (4 q), key and value (4 k), and four results between the two halves of the
feed-forward network (8 i). Without a gate, linear has 2*h*i and a block keeps 4 i. Scores of
attention are not kept (flash attention). `nf4` is half a byte a weight, an 8-bit scale for 64 of
them, and a 32-bit scale for 256 of those (QLoRA, arXiv 2305.14314).
An optimizer keeps `state` copies of each trained number, and makes `update` copies while it
updates; 8-bit Adam keeps two bytes and their scales (`state_bytes`). `bytes_per_logit` is of the
logits in 16 bits and in 32, of their softmax and of a gradient, as Transformers runs them.
finetuning.json has all of these.

Beside 4-bit weights PEFT's `prepare_model_for_kbit_training` puts embedding, head and norms in 32
bits, and so what goes from block to block: e and s are `trained_bytes`, which is 2 where all is in
16 bits, as in torchtune; else s is 2. PEFT casts the input of each adapter.

The time is that of `finetuning_step` in the model of `time.step_time`. In 32 bits a block keeps
twice as much.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any

from course_tools.estimate.answer import Answer
from course_tools.estimate.answers import Answers, answer_all
from course_tools.estimate.checks import check_positive, spelled
from course_tools.estimate.chips import DEVICES, Chip
from course_tools.estimate.counting.work import Sums, Work
from course_tools.estimate.demand import AsAsked, StepOnMachine
from course_tools.estimate.language.finetuning_step import finetuning_step
from course_tools.estimate.language.language_model import (
    LanguageModel,
    find_language_model,
    known_name,
)
from course_tools.estimate.machine import Machine, machines
from course_tools.estimate.memory.memory_model import Held, capacity_bytes, fits
from course_tools.estimate.time.error_factor import ErrorFactor
from course_tools.estimate.time.step_time import Host, StepTime, time_beside

FINETUNING_FILE = Path(__file__).parent / "finetuning.json"
LENGTH = 2048  # tokens of a sample where none is named, unless the model's context is shorter
LONG = 4096  # tokens of a sample from which the kind of attention counts
SHORTEST = 512  # of the lengths that are tried where nothing fits


@dataclass(frozen=True)
class TuningMemory(Held):
    """The memory of one step of fine-tuning on one GPU, in bytes.

    Attributes:
        weights: of the model, as they are kept, and of LoRA's adapters.
        gradients: of what is trained.
        optimizer: its state, and what it makes while it updates where the peak is there.
        activations: kept for the backward pass, with the logits; 0 where they have gone at the
            peak.
    """

    weights: float
    gradients: float
    optimizer: float
    activations: float


@dataclass(frozen=True)
class Tuning(AsAsked):
    """What a step of fine-tuning asks of any machine.

    Attributes:
        name: of the model.
        shape: of the model.
        method: "full", "lora" or "4-bit".
        batch: samples in a step.
        length: tokens of a sample.
        targets: the linear layers that get LoRA's matrices.
        rank, optimizer, trained_bytes, in_backward, checkpointing, chunks, compiled, padded,
        in_32_bits: as for `estimate_finetuning`.
    """

    name: str
    shape: LanguageModel
    method: str
    batch: int
    length: int
    targets: tuple[str, ...]
    rank: int
    optimizer: str
    trained_bytes: int
    in_backward: bool
    checkpointing: bool
    chunks: int
    compiled: bool
    padded: bool = False
    in_32_bits: bool = False
    together = False
    training = True

    @property
    def trained(self) -> int:
        """Numbers that are trained."""
        if self.method == "full":
            return self.shape.linear + self.shape.rest
        return self.shape.adapters(self.rank, self.targets)

    @property
    def _state_bytes(self) -> float:
        kept = finetuning_numbers()["optimizers"][self.optimizer]
        return self.trained * kept.get("state_bytes", self.trained_bytes * kept.get("state", 0))

    @cached_property
    def memory(self) -> TuningMemory:
        """What fills the memory; the formulas stand at the top of this module."""
        numbers, shape = finetuning_numbers(), self.shape
        kept = numbers["optimizers"][self.optimizer]
        frozen = {
            "full": 0,
            "lora": 2 * (shape.linear + shape.rest),
            "4-bit": numbers["nf4_bytes"] * shape.linear + self.trained_bytes * shape.rest,
        }[self.method]
        in_step = self.batch * self.length
        block = shape.block_bytes(in_step)
        if self.method != "full":
            block += 2 * in_step * sum(shape.shapes[name][0] for name in self.targets)
        block *= 2 if self.in_32_bits else 1
        logits = in_step / self.chunks * shape.vocabulary * numbers["bytes_per_logit"]
        activations = shape.layers * block + logits
        if self.checkpointing:  # the logits have gone when the first block is computed again
            stream = self.trained_bytes if self.method == "4-bit" else 2
            activations = in_step * stream * shape.layers * shape.hidden + max(block, logits)
        state = 0 if kept.get("paged") else self._state_bytes
        update = 0 if self.in_backward else self.trained * self.trained_bytes * kept["update"]
        with_gradient = shape.largest_matrix if self.in_backward else self.trained
        in_update = update > activations  # when the peak comes
        return TuningMemory(
            weights=frozen + self.trained_bytes * self.trained,
            gradients=self.trained_bytes * with_gradient,
            optimizer=state + update if in_update else state,
            activations=0 if in_update else activations,
        )

    @cached_property
    def work(self) -> Work:
        """The step, in closed form."""
        return finetuning_step(
            self.shape,
            self.method,
            finetuning_numbers()["step"],
            batch=self.batch,
            length=self.length,
            trained=self.trained,
            checkpointing=self.checkpointing,
            trained_bytes=self.trained_bytes,
            state=self._state_bytes / self.trained / self.trained_bytes,
        )

    @property
    def flops(self) -> float:
        """Arithmetic operations of a step."""
        return self.work.flops

    def on(self, machine: Machine) -> StepOnMachine:
        """Return the step on a machine; see `demand.Demand`."""
        if machine.count > 1:
            raise ValueError(
                f"fine-tuning is estimated on one card, but {machine.name} was asked for. For "
                f"several, ask about the model as a network (shards=)."
            )
        chip = machine.chip
        launches = finetuning_numbers()["step"]["launch_s"]
        host = Host(0.0, launches, "fitted on published fine-tunings")
        work = replace(self.work, precision=chip.at("amp"))
        parts = self._seconds(work, partial(time_beside, host, chip=chip, compiled=self.compiled))
        evidence = self._evidence(chip)
        tokens = self.batch * self.length
        low, high = parts.total_s / evidence.factor, parts.total_s * evidence.upper
        needed = self.memory.needed_bytes
        return StepOnMachine(
            precision=work.precision,
            seconds=parts.total_s,
            evidence=evidence,
            fits=fits(needed, capacity_bytes(chip), "formula_margin"),
            needed_bytes=needed,
            parts=parts,
            tokens_per_s=(tokens / high, tokens / low),
        )

    def _seconds(self, work: Work, time: Callable[[Work], StepTime]) -> StepTime:
        """Return the seconds of a step with the kind of attention that is asked.

        A padding mask keeps all scores, not the causal half, and takes a kernel of half the speed
        of flash attention (Dao 2023, arXiv 2307.08691). In 32 bits nothing but the products with
        the frozen weights is in 16, and what lies between them moves twice the bytes.
        """
        scores = Sums(2 * work.attention.flops)
        if not self.in_32_bits:
            return time(replace(work, attention=Sums(2 * scores.flops)) if self.padded else work)
        frozen = time(replace(work, attention=Sums(), other=Sums()))
        between = Sums(work.other.flops, 2 * work.other.bytes_moved, work.other.kernels)
        rest = replace(work, precision="fp32", matrix=Sums(), unaligned=0.0, other=between)
        more = time(replace(rest, attention=scores))
        return StepTime(
            launch_s=more.launch_s,
            memory_s=frozen.memory_s + more.memory_s,
            arithmetic_s=frozen.arithmetic_s + more.arithmetic_s,
        )

    def _evidence(self, chip: Chip) -> ErrorFactor:
        known = next(
            one
            for one in finetuning_numbers()["evidence"]
            if one["method"] in (None, self.method)
            and (one["devices"] is None or chip.name in one["devices"])
            and self.batch * self.length >= one["tokens"]
            and self.length >= one.get("length", 1)
            and self.shape.parameters >= one.get("parameters", 0)
            and (one.get("assumed") or not (self.padded or self.in_32_bits))
        )
        checked = not known.get("assumed", False)
        return ErrorFactor(known["factor"], checked, (known["about"],), known.get("slower"))

    def smaller(self) -> Iterator[tuple[str, "Tuning"]]:
        """Yield what needs less memory; see `demand.Demand`."""
        one = self
        if self.batch > 1:
            one = replace(self, batch=1)
            yield "a batch of 1", one
        if self.method == "full":  # LoRA over 16 bits needs more than all weights in this way
            words = "16-bit weights, a paged 8-bit optimizer in the backward pass and a loss in 8"
            asked = "trained_bytes=2, optimizer='paged8bit', in_backward=True, chunks=8"
            yield (
                f"{words} chunks ({asked}; torchtune has them)",
                replace(one, trained_bytes=2, optimizer="paged8bit", in_backward=True, chunks=8),
            )
        if self.method != "4-bit":
            one = replace(one, method="4-bit", optimizer="adam", in_backward=False)
            yield "LoRA over 4-bit weights (QLoRA)", one
        while one.length > SHORTEST:
            one = replace(one, length=max(SHORTEST, one.length // 2))
            yield f"4-bit weights, a batch of 1 and samples of {one.length:,} tokens", one

    def notes(self, rows: Sequence[Answer]) -> list[str]:
        """Return what was taken for granted; see `demand.Demand`."""
        row = rows[0]
        how = ", padded=True" * self.padded + ", in_32_bits=True" * self.in_32_bits
        lines = [
            f"The job: {self.name}, method={self.method!r}, samples={row.samples:.0f}, "
            f"epochs={row.epochs}, batch={self.batch}, length={self.length}, "
            f"optimizer={self.optimizer!r}{how}. Samples are padded or packed to that length in "
            f"tokens: shorter ones take less time in proportion."
        ]
        if self.checkpointing:
            lines.append(
                "Counted with gradient checkpointing, which Transformers does only if asked to: "
                "without it the activations need several times as much memory."
            )
        if self.shape.context and self.length > self.shape.context:
            lines.append(f"It was made for at most {self.shape.context:,} tokens.")
        numbers = finetuning_numbers()
        if self.method == "4-bit" and not self.in_32_bits:
            lines.append(numbers["autocast"])
        if self.length >= LONG and not self.padded:
            lines.append(numbers["long"])
        if self.method != "full":
            lines.append(numbers["reserved"])
        if self.in_backward:
            lines.append("The time of an optimizer in the backward pass is taken for the usual.")
        return [*lines, "Reading data is not included."]

    def details(self, rows: Sequence[Answer]) -> list[str]:
        """Return what fills the memory; see `demand.Demand`."""
        return [self.memory.sentence(), finetuning_numbers()["memory_error"]]

    def to_dict(self) -> dict[str, Any]:
        """Return it ready for JSON; see `Answers.to_dict`."""
        kept = ("shape", "targets", "work", "memory")
        question = {name: value for name, value in vars(self).items() if name not in kept}
        return {"question": question | {"trained": self.trained}, "memory": self.memory.parts()}


def estimate_finetuning(
    model: str | Path | Mapping[str, Any] | LanguageModel,
    method: str = "lora",
    *,
    devices: Sequence[str | Chip | Machine] = DEVICES,
    samples: int = 10_000,
    epochs: int = 1,
    length: int | None = None,
    tokens: int | None = None,
    batch: int = 1,
    rank: int = 16,
    targets: Sequence[str] | None = None,
    optimizer: str = "adam",
    trained_bytes: int = 4,
    in_backward: bool = False,
    checkpointing: bool = True,
    chunks: int = 1,
    compiled: bool = False,
    padded: bool = False,
    in_32_bits: bool = False,
    deadline_hours: float | None = None,
    prices: Mapping[str, float] | str | None = None,
    currency: str = "$",
) -> Answers[Tuning]:
    """Estimate memory, hours and cost of fine-tuning a language model on one GPU.

        >>> found = estimate_finetuning("Llama 3.1 8B", "4-bit", devices=["RTX 4090"], tokens=10**7)
        >>> found["RTX 4090"].fits, 0.5 < found["RTX 4090"].hours < 2
        (True, True)

    Args:
        model: a name such as "Llama 3.1 8B" or "meta-llama/Llama-3.1-8B-Instruct"
            (`language_models()` lists them), or your own: the path of its config.json, what that
            holds, or its shape.
        method: "full" trains all weights, "lora" two narrow matrices beside each target, over
            frozen weights in 16 bits, "4-bit" the same over frozen weights in 4 bits (QLoRA).
        devices: as for `estimate`, one card each.
        samples: in one epoch.
        epochs: how many times all samples are used.
        length: tokens of a sample, or None for 2,048 (or the model's context, if that is shorter).
        tokens: of all samples together, in place of `samples`.
        batch: samples in a step.
        rank: of LoRA's matrices.
        targets: the linear layers that get them, of "q", "k", "v", "o", "gate", "up", "down", or
            None for all.
        optimizer: "adam" or "adamw" as PyTorch runs them on a GPU, "fused", "adam8bit",
            "paged8bit" (whose state may lie in the computer's memory), or "sgd".
        trained_bytes: of a number that is trained: 4 where it is kept in 32 bits, as mixed
            precision and PEFT do, or 2 where it is in 16 bits, with its gradient and its moments.
        in_backward: the optimizer updates each weight in the backward pass and frees its gradient.
        checkpointing: keep each block's input, and compute the rest again.
        chunks: pieces in which the head and the loss are computed: 1 in Transformers, 8 in
            torchtune.
        compiled: whether the model goes through torch.compile.
        padded: samples come with a padding mask, which rules out flash attention.
        in_32_bits: attention and adapters are computed in 32 bits, as PEFT does with 4-bit weights
            where no autocast is on (bf16=True of a Trainer).
        deadline_hours, prices, currency: as for `estimate`.

    Raises:
        ValueError: a name is unknown, a number is not positive, or a price is negative.
    """
    shape = find_language_model(model)
    if length is None:
        length = min(LENGTH, shape.context or LENGTH)
    optimizer = spelled("optimizer", optimizer, finetuning_numbers()["optimizers"])
    method = spelled("method", method, ("full", "lora", "4-bit"), {"qlora": "4-bit"})
    if targets is not None and not targets:
        raise ValueError(
            "targets is empty. Name the layers that LoRA trains, or pass None for all."
        )
    chosen = tuple(spelled("target", name, shape.shapes) for name in targets or shape.shapes)
    if trained_bytes not in (2, 4):
        raise ValueError(f"trained_bytes is 2 or 4, but got {trained_bytes!r}.")
    if in_backward and method != "full":
        raise ValueError("in_backward is for method='full': LoRA's gradients are small.")
    tuning = Tuning(
        name=known_name(model) or model if isinstance(model, str) else "a model of your own",
        shape=shape,
        method=method,
        batch=check_positive("batch", batch),
        length=check_positive("length", length),
        targets=chosen,
        rank=check_positive("rank", rank),
        optimizer=optimizer,
        trained_bytes=trained_bytes,
        in_backward=in_backward,
        checkpointing=checkpointing,
        chunks=check_positive("chunks", chunks),
        compiled=compiled,
        padded=padded,
        in_32_bits=in_32_bits,
    )
    if tokens is not None:
        samples = check_positive("tokens", tokens) / length  # type: ignore[assignment]
    return answer_all(
        lambda: tuning,
        machines(devices),
        samples=samples if tokens is not None else check_positive("samples", samples),
        epochs=epochs,
        deadline_hours=deadline_hours,
        prices=prices,
        currency=currency,
    )


@cache
def finetuning_numbers() -> dict[str, Any]:
    """Return finetuning.json: the fitted numbers, and how far off they were."""
    return dict(json.loads(FINETUNING_FILE.read_text(encoding="utf-8")))
