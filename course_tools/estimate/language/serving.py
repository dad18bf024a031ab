"""Inference of a language model: does it fit a card, how fast is it, what does it cost? No torch.

A request has a prompt, which is read at once (prefill), and an answer, which is made token by token
(decode). With the shape's weights, B requests at once, C tokens of context and the numbers of the
runtime (serving.json):

    weights    = linear * bytes[0] + rest * bytes[1]                            bytes
    cache      = B * C * 4 * layers * kv                        keys and values in 16 bits
    needed     = weights + cache + framework

    rate       = bandwidth of the data sheet * bandwidth_share
    arithmetic = peak * achieved * arithmetic_share
    read       = linear met * bytes[0] + head * bytes[1]        the embedding is only looked up
    prefill_s  = seconds(read, flops)
    decode_s   = seconds(read + k * cache, answers)
    flops      = B * (2 * linear used * prompt + 2 * layers * query * prompt^2)     causal attention
    answers    = 2 * B * (linear used + head)
    k          = kv_times + kv_spread * heads / kv_heads
    seconds(b, f) = hypot(layers * host_s,                              host and chip overlap
                          layers * layer_s + b / rate + max(f / arithmetic, b * byte_flops / fp32))

`layer_s` is what a layer takes beside its bytes and operations (with experts `expert_layer_s`),
and `host_s` what a host of 2021 needs to launch it; one of today needs as much less as in
`time.step_time`. llama.cpp unpacks and
multiplies outside the tensor cores, so a byte takes `byte_flops` operations of the peak in fp32
there: a card with much bandwidth for its fp32, such as the A100, does not reach it. In 4 bits the
cards of data centres take `unpack_flops`, so an H200 writes hardly faster than an H100.
Transformers copies keys and values into a longer tensor for each token (`kv_times`), and once for
each head that shares them (`kv_spread`). With experts, `linear used` is what one token meets, and
`linear met` what the tokens of a step meet together, an even share for each expert.

The numbers are fitted on published rates, and the factors are the errors that were seen on them.
"""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from course_tools.estimate.answer import Answer
from course_tools.estimate.answers import Answers, answer_all
from course_tools.estimate.checks import check_positive, spelled
from course_tools.estimate.chips import DEVICES, Chip
from course_tools.estimate.demand import StepOnMachine
from course_tools.estimate.language.language_model import (
    LanguageModel,
    find_language_model,
    known_name,
)
from course_tools.estimate.machine import Machine, machines
from course_tools.estimate.memory.memory_model import Held, capacity_bytes, fits, framework_bytes
from course_tools.estimate.time.error_factor import ErrorFactor
from course_tools.estimate.time.step_time import cloud_host
from course_tools.estimate.words import number
from course_utils.units import format_bytes, format_seconds

SERVING_FILE = Path(__file__).parent / "serving.json"
BITS = (16, 8, 4)
BATCHING, AT_ONCE = "vLLM", 32  # it gathers requests, and so many are usual
GGUF = ("ollama", "lmstudio", "gguf", "koboldcpp")  # llama.cpp is inside
# bytes per second that a computer reads from its own memory: two channels of DDR5, assumed
COMPUTER_RATE = 60e9


@dataclass(frozen=True)
class ServingMemory(Held):
    """The memory of answering: estimated, in bytes.

    Attributes:
        weights: of the model.
        cache: of keys and values, at the end of the answers.
    """

    weights: float
    cache: float


@dataclass(frozen=True)
class Rates:
    """How fast a model answers on one device: estimated.

    Attributes:
        prefill_s: seconds to read the prompts.
        decode_s: seconds to make one token of each answer, in the middle of the answers.
        prefill_factor, decode_factor: in nine cases of ten the truth is between a time / factor and
            a time * factor.
        prefill_tokens_per_s: tokens of prompts that are read per second.
        decode_tokens_per_s: tokens of all answers per second, while they are made.
    """

    prefill_s: float
    decode_s: float
    prefill_factor: float
    decode_factor: float
    prefill_tokens_per_s: float
    decode_tokens_per_s: float


@dataclass(frozen=True)
class Serving:
    """What answering a batch of requests asks of any machine.

    Attributes:
        name: of the model.
        shape: of the model.
        bits: of a weight.
        runtime: the program that answers.
        batch: requests that are answered at once.
        prompt, generated: tokens of a request, and of its answer.
    """

    name: str
    shape: LanguageModel
    bits: int
    runtime: str
    batch: int
    prompt: int
    generated: int
    together = False
    training = False
    flops = None

    @property
    def _program(self) -> dict[str, Any]:
        return dict(serving_numbers()["runtimes"][self.runtime])

    @property
    def memory(self) -> ServingMemory:
        """What fills the memory."""
        of_linear, elsewhere = self._program["bytes"][str(self.bits)]
        return ServingMemory(
            weights=self.shape.linear * of_linear + self.shape.rest * elsewhere,
            cache=self.batch * (self.prompt + self.generated) * cache_per_token(self.shape),
        )

    def rates(self, chip: Chip) -> Rates:
        """Return how fast it answers on a chip."""
        program = self._program
        asked = self.batch, self.prompt, self.generated
        prefill_s, decode_s = times(self.shape, chip, program, self.bits, *asked)
        known = self._evidence(chip)
        return Rates(
            prefill_s=prefill_s,
            decode_s=decode_s,
            prefill_factor=known["prefill"],
            decode_factor=known["decode"],
            prefill_tokens_per_s=self.batch * self.prompt / prefill_s,
            decode_tokens_per_s=self.batch / decode_s,
        )

    def _evidence(self, chip: Chip) -> dict[str, Any]:
        """Return the first entry that is for this chip and a model of this size."""
        return next(
            one
            for one in self._program["evidence"]
            if self.shape.parameters >= one["parameters"]
            and self.bits >= one.get("bits", 0)
            and (self.shape.experts == 1 or not one.get("dense"))
            and (one["devices"] is None or chip.name in one["devices"])
        )

    def on(self, machine: Machine) -> StepOnMachine:
        """Return a batch of requests, from the prompts to the ends of the answers, on a machine."""
        if machine.count > 1:
            raise ValueError(
                f"serving is estimated on one card, but {machine.name} was asked for. Where each "
                f"has a copy, each answers as many requests; a split model is not estimated."
            )
        chip, known = machine.chip, self._evidence(machine.chip)
        rates = self.rates(chip)
        prompt_s, answer_s = rates.prefill_s, self.generated * rates.decode_s
        seconds = prompt_s + answer_s
        low = prompt_s / rates.prefill_factor + answer_s / rates.decode_factor
        high = prompt_s * rates.prefill_factor + answer_s * rates.decode_factor
        needed, rate = self.memory.needed_bytes, rates.decode_tokens_per_s
        about, checked = known["about"], not known.get("assumed", False)
        return StepOnMachine(
            precision=f"{self.bits} bits",
            seconds=seconds,
            evidence=ErrorFactor(seconds / low, checked, (about,), high / seconds),
            fits=fits(needed, capacity_bytes(chip), "formula_margin"),
            needed_bytes=needed,
            tokens_per_s=(rate / rates.decode_factor, rate * rates.decode_factor),
        )

    def smaller(self) -> Iterator[tuple[str, "Serving"]]:
        """Yield what needs less memory; see `demand.Demand`."""
        one = self
        if self.batch > 1:
            one = replace(self, batch=1)
            yield "one request at a time", one
        for bits in BITS:
            if bits < self.bits:
                yield f"the model in {bits} bits", replace(one, bits=bits)

    def larger(self, machine: Machine, samples: float) -> "Serving | None":
        """Return it with more requests at once, where the runtime gathers them, or None."""
        batch = AT_ONCE
        while self.runtime == BATCHING and batch > self.batch:
            more = replace(self, batch=batch)
            if batch <= samples and more.on(machine).fits:
                return more
            batch //= 2
        return None

    def first_line(self, rows: Sequence[Answer]) -> str | None:
        """Return what to do where the model fits none of the devices, or None."""
        if any(row.fits for row in rows):
            return None
        needs = f"{self.name} in {self.bits} bits needs {format_bytes(self.memory.needed_bytes)}"
        return f"{needs} and fits none of these devices. {self._offloaded(rows)}"

    def _offloaded(self, rows: Sequence[Answer]) -> str:
        """Return what it would be like with a part of the weights in the computer's memory."""
        named = [row.machine.chip for row in rows if row.machine]
        if not named:
            return ""
        chip = max(named, key=capacity_bytes)
        lean = replace(self, bits=min(self.bits, 4), runtime="llama.cpp", batch=1)
        memory = lean.memory
        room = capacity_bytes(chip) / 1.1 - memory.cache - framework_bytes(memory.cache)
        outside = max(0.0, memory.weights - max(0.0, room))
        if not outside:
            return ""
        share = outside / memory.weights
        read = share * (lean.shape.linear_met(1) + lean.shape.head) / lean.shape.parameters
        seconds = lean.rates(chip).decode_s * (1 - share) + read * memory.weights / COMPUTER_RATE
        return (
            f"With llama.cpp in {lean.bits} bits on the {chip.name}, {share:.0%} of its weights "
            f"would stay in the computer's memory ({format_bytes(outside)} of RAM), and one answer "
            f"would be written at about {number(1 / seconds)} tokens/s (assumed: a computer that "
            f"reads {COMPUTER_RATE / 1e9:.0f} GB/s)."
        )

    def notes(self, rows: Sequence[Answer]) -> list[str]:
        """Return what was taken for granted; see `demand.Demand`."""
        lines = [
            f"The job: {self.name}, bits={self.bits}, runtime={self.runtime!r} "
            f"({self._program['versions']}), requests={rows[0].samples:.0f}, of which "
            f"batch={self.batch} at once, each with a prompt={self.prompt} tokens long and "
            f"generated={self.generated} tokens. The time and the cost are of all requests, and "
            f"the tokens per second those of all answers.",
            "The device is taken to be busy all the time: idle hours cost as much.",
        ]
        if self.shape.context and self.prompt + self.generated > self.shape.context:
            lines.append(f"The model was made for at most {self.shape.context:,} tokens.")
        if self.bits > self.shape.published_bits:
            few = self.shape.published_bits
            lines.append(f"It is published in {few} bits: bits={few} asks about that.")
        return lines

    def details(self, rows: Sequence[Answer]) -> list[str]:
        """Return what fills the memory, and how long a request takes; see `demand.Demand`."""
        lines = [self.memory.sentence()]
        for row in rows:
            if row.machine:
                rates = self.rates(row.machine.chip)
                read, factor = rates.prefill_tokens_per_s, rates.prefill_factor
                takes = " to ".join(map(format_seconds, row.step_interval_s))
                lines.append(
                    f"{row.name}: prompts are read at {number(read / factor)} to "
                    f"{number(read * factor)} tokens/s, and a request takes {takes}."
                )
        return lines

    def to_dict(self) -> dict[str, Any]:
        """Return it ready for JSON; see `Answers.to_dict`."""
        question = {name: value for name, value in vars(self).items() if name != "shape"}
        return {"question": question, "memory": self.memory.parts()}


def estimate_serving(
    model: str | Path | Mapping[str, Any] | LanguageModel,
    *,
    devices: Sequence[str | Chip | Machine] = DEVICES,
    requests: int = 1000,
    bits: int | None = None,
    runtime: str = "vLLM",
    batch: int = 1,
    prompt: int = 512,
    generated: int = 256,
    deadline_hours: float | None = None,
    prices: Mapping[str, float] | str | None = None,
    currency: str = "$",
) -> Answers[Serving]:
    """Estimate memory, speed and cost of answering requests with a language model on one device.

        >>> asked = {"bits": 4, "runtime": "llama.cpp", "devices": ["RTX 3070"]}
        >>> answer = estimate_serving("Llama 3.1 8B", **asked)["RTX 3070"]
        >>> answer.fits, 40 < answer.tokens_per_s[0] < answer.tokens_per_s[1] < 120
        (True, True)

    Args:
        model: as for `estimate_finetuning`.
        devices: as for `estimate`, one card each.
        requests: of the whole job, whose hours and cost are answered.
        bits: of a weight: 16, 8 or 4; None takes those of the published files, which the name or
            config.json says, or 16.
        runtime: "vLLM", "llama.cpp" (or "Ollama", which has it inside) or "Transformers"; each has
            its own format of 8 and 4 bits.
        batch: requests that are answered at once.
        prompt: tokens of a request.
        generated: tokens of an answer.
        deadline_hours, prices, currency: as for `estimate`.

    Returns:
        What fits, how fast it is and what it costs. The device is never idle: at one request at a
        time the price of the idle hours comes on top.

    Raises:
        ValueError: a name is unknown, a number is not positive, a price is negative, or the model
            writes no answers.
    """
    shape = find_language_model(model)
    name = known_name(model) or model if isinstance(model, str) else "a model of your own"
    if shape.encoder:
        raise ValueError(
            f"{name} is an encoder: it reads texts and writes no answers. Its forward "
            f"pass is a question about a network, with training=False."
        )
    runtimes = serving_numbers()["runtimes"]
    runtime = spelled("runtime", runtime, runtimes, dict.fromkeys(GGUF, "llama.cpp"))
    program = runtimes[runtime]
    bits = shape.published_bits if bits is None else bits
    if str(bits) not in program["bytes"]:
        raise ValueError(f"bits must be one of {', '.join(program['bytes'])}, but got {bits!r}.")
    counts = {"batch": batch, "prompt": prompt, "generated": generated}
    counts = {each: check_positive(each, value) for each, value in counts.items()}
    serving = Serving(name=name, shape=shape, bits=int(bits), runtime=runtime, **counts)
    return answer_all(
        lambda: serving,
        machines(devices),
        samples=check_positive("requests", requests),
        epochs=1,
        deadline_hours=deadline_hours,
        prices=prices,
        currency=currency,
    )


def cache_per_token(shape: LanguageModel) -> int:
    """Return the bytes of keys and values that a token leaves behind, in 16 bits."""
    return 4 * shape.layers * shape.kv


def times(
    shape: LanguageModel,
    chip: Chip,
    program: Mapping[str, Any],
    bits: int,
    batch: int,
    prompt: int,
    generated: int,
) -> tuple[float, float]:
    """Return the seconds of a prefill and of one step of decoding: the model itself.

    Args:
        program: the numbers of a runtime, of serving.json.
        bits, batch, prompt, generated: as for `estimate_serving`.
    """
    of_linear, elsewhere = program["bytes"][str(bits)]
    rate = chip.bandwidth_gb_per_s * 1e9 * program["bandwidth_share"]
    precision = "amp" if "fp16" in chip.peaks or "bf16" in chip.peaks else "fp32"
    arithmetic = chip.peak(precision) * chip.achieved(precision) * program["arithmetic_share"]
    plain = chip.peaks.get("fp32", 0.0) * 1e12 or chip.peak(precision)
    unpacking = program.get("unpack_flops", {}) if bits == 4 else {}
    byte_flops = unpacking.get(chip.family, program["byte_flops"])
    host_s = shape.layers * program["host_s"][str(bits)]
    host_s *= cloud_host(chip).launch_s / cloud_host().launch_s
    of_experts = program.get("expert_layer_s", 0.0) if shape.experts > 1 else 0.0
    layer_s = shape.layers * (of_experts or program["layer_s"])

    def read_bytes(tokens: int) -> float:
        return shape.linear_met(tokens) * of_linear + shape.head * elsewhere

    def seconds(bytes_read: float, flops: float) -> float:
        calculated = max(flops / arithmetic, bytes_read * byte_flops / plain)
        return math.hypot(host_s, layer_s + bytes_read / rate + calculated)

    attention = 2 * shape.layers * shape.query * prompt**2
    flops = batch * (2 * shape.linear_used * prompt + attention)
    copies = program["kv_times"] + program["kv_spread"] * shape.heads / shape.kv_heads
    cache_bytes = copies * batch * (prompt + generated / 2) * cache_per_token(shape)
    answers = 2 * batch * (shape.linear_used + shape.head)
    prefill_s = seconds(read_bytes(batch * prompt), flops)
    return prefill_s, seconds(read_bytes(batch) + cache_bytes, answers)


@cache
def serving_numbers() -> dict[str, Any]:
    """Return serving.json: the numbers of each runtime, and where they come from."""
    return dict(json.loads(SERVING_FILE.read_text(encoding="utf-8")))
