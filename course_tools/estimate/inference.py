"""Inference of a language model: does it fit a card, how fast is it, what does it cost? No torch.

A request has a prompt, which is read at once (prefill), and an answer, which is made token by token
(decode). With the shape's weights, B requests at once, C tokens of context and the numbers of the
runtime (inference.json):

    weights    = linear * bytes[0] + rest * bytes[1]                            bytes
    cache      = B * C * 4 * layers * kv                        keys and values in 16 bits
    needed     = weights + cache + framework

    rate       = bandwidth of the data sheet * bandwidth_share
    arithmetic = peak * achieved * arithmetic_share
    read       = linear met * bytes[0] + head * bytes[1]        the embedding is only looked up
    prefill_s  = longest(read / rate + flops / arithmetic)
    decode_s   = longest((read + kv_times * cache) / rate + answers / arithmetic)
    flops      = B * (2 * linear used * prompt + 2 * layers * query * prompt^2)     causal attention
    answers    = 2 * B * (linear used + head)
    longest(t) = max(layers * host_s, layers * layer_s + t)

`layer_s` is what a layer takes beside its bytes and operations, and `host_s` what the host needs to
launch it. With experts, `linear used` is what one token meets, and `linear met` what the tokens of
a step meet together, an even share for each expert.

The numbers are fitted on published rates, which stand in published_inference.csv; the factors are
the errors that were seen on them.
"""

import csv
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from course_tools.estimate.checks import check_positive
from course_tools.estimate.chips import Chip, find_chip
from course_tools.estimate.language_model import LanguageModel, find_language_model, look_up
from course_tools.estimate.memory.memory_model import capacity_bytes, fits, framework_bytes
from course_tools.estimate.money.prices import own_price, prices_by_device
from course_tools.estimate.row import HERE, amounts, number
from course_utils.text import format_bytes, format_seconds, text_table

INFERENCE_FILE = Path(__file__).parent / "inference.json"
PUBLISHED_FILE = Path(__file__).parent / "published_inference.csv"


@dataclass(frozen=True)
class Inference:
    """A language model that answers requests on one device: estimated.

    Attributes:
        device: the chip's name.
        runtime: the program that the speed is for, with its version.
        bits: of a weight.
        batch: requests that are answered at once.
        prompt, generated: tokens of a request, and of its answer.
        weights_bytes: of the model.
        cache_bytes: of keys and values, at the end of the answers.
        needed_bytes: what a device must have: both, and what the framework needs.
        capacity_bytes: of the device's memory.
        fits: whether it does, with a margin.
        prefill_s: seconds to read the prompts.
        decode_s: seconds to make one token of each answer, in the middle of the answers.
        prefill_factor, decode_factor: in nine cases of ten the truth is between a time / factor and
            a time * factor.
        checked: whether rates of this runtime were compared on this device.
        about: what the factors were seen on.
        price_per_hour: of the device, or None.
        currency: of the price.
    """

    device: str
    runtime: str
    bits: int
    batch: int
    prompt: int
    generated: int
    weights_bytes: float
    cache_bytes: float
    needed_bytes: float
    capacity_bytes: float
    fits: bool
    prefill_s: float
    decode_s: float
    prefill_factor: float
    decode_factor: float
    checked: bool
    about: str
    price_per_hour: float | None = None
    currency: str = "$"

    @property
    def prefill_tokens_per_s(self) -> float:
        """Tokens of prompts that are read per second."""
        return self.batch * self.prompt / self.prefill_s

    @property
    def decode_tokens_per_s(self) -> float:
        """Tokens of all answers per second, while they are made."""
        return self.batch / self.decode_s

    @property
    def request_s(self) -> float:
        """Seconds from a request to the end of its answer."""
        return self.prefill_s + self.generated * self.decode_s

    @property
    def request_interval_s(self) -> tuple[float, float]:
        """The interval of these seconds."""
        answer_s = self.generated * self.decode_s
        low = self.prefill_s / self.prefill_factor + answer_s / self.decode_factor
        return low, self.prefill_s * self.prefill_factor + answer_s * self.decode_factor

    def cost_of_requests(self, count: int = 1000) -> tuple[float, float] | None:
        """Return the price of some requests, as an interval, on a device that is never idle."""
        if self.price_per_hour is None:
            return None
        low, high = (
            self.price_per_hour / 3600 * count * seconds / self.batch
            for seconds in self.request_interval_s
        )
        return low, high

    def cost_of_tokens(self, count: int = 1_000_000) -> tuple[float, float] | None:
        """Return the price of some tokens of answers, as an interval, their prompts with them."""
        cost = self.cost_of_requests(1)
        return cost and (cost[0] * count / self.generated, cost[1] * count / self.generated)

    def to_dict(self) -> dict[str, Any]:
        """Return everything, ready for JSON."""
        return self.__dict__ | {
            "prefill_tokens_per_s": self.prefill_tokens_per_s,
            "decode_tokens_per_s": self.decode_tokens_per_s,
            "request_s": self.request_s,
            "request_interval_s": self.request_interval_s,
            "cost_of_1000_requests": self.cost_of_requests(),
            "cost_of_a_million_tokens": self.cost_of_tokens(),
        }

    def __repr__(self) -> str:
        verdict = "fits" if self.fits else "does not fit"
        memory = f"{format_bytes(self.needed_bytes)} of {format_bytes(self.capacity_bytes)}"
        requests = f"{self.batch} request{'s' * (self.batch > 1)} at once"
        head = f"{self.bits} bits on the {self.device} with {self.runtime}, {requests}: estimated"
        read, written = self.prefill_tokens_per_s, self.decode_tokens_per_s
        rows = [
            ("memory", f"{memory}, {verdict}"),
            ("reads prompts", _tokens(read, self.prefill_factor)),
            ("writes answers", _tokens(written, self.decode_factor)),
            ("a request takes", " to ".join(map(format_seconds, self.request_interval_s))),
        ]
        costs = {"1,000 requests": self.cost_of_requests()}
        costs["a million tokens"] = self.cost_of_tokens()
        for what, cost in costs.items():
            if cost is not None:
                rows.append((what, amounts(cost, self.currency)))
        known = "checked" if self.checked else "unchecked"
        return f"{head}\n{text_table(('', known), rows)}\nThe intervals: {self.about}."


def _tokens(rate: float, factor: float) -> str:
    return f"{number(rate / factor)} to {number(rate * factor)} tokens/s"


def estimate_inference(
    model: str | Path | Mapping[str, Any] | LanguageModel,
    device: str | Chip,
    *,
    bits: int = 16,
    runtime: str = "vLLM",
    batch: int = 1,
    prompt: int = 512,
    generated: int = 256,
    price_per_hour: float | None = None,
    currency: str = "$",
) -> Inference:
    """Estimate memory, speed and cost of answering requests with a language model on one device.

        >>> answer = estimate_inference("Llama 3.1 8B", "RTX 3070", bits=4, runtime="llama.cpp")
        >>> answer.fits, 60 < answer.decode_tokens_per_s < 100
        (True, True)

    Args:
        model: a name in `language_models()`, the path of a config.json, what that holds, or a
            shape.
        device: the name of a chip, such as "RTX 4090", or your own `Chip`.
        bits: of a weight: 16, 8 or 4.
        runtime: "vLLM", "llama.cpp" or "Transformers"; each has its own format of 8 and 4 bits.
        batch: requests that are answered at once.
        prompt: tokens of a request.
        generated: tokens of an answer.
        price_per_hour: of the device; a dated example stands in where there is one.
        currency: of your price.

    Returns:
        What fits and how fast it is; it shows itself, and `to_dict` is for JSON. Answers of a
        device that is never idle: at one request at a time the price of the idle hours comes on
        top.

    Raises:
        ValueError: a name is unknown, a number is not positive, or a price is negative.
    """
    shape, chip = find_language_model(model), find_chip(device)
    program = look_up("runtime", runtime, inference_evidence()["runtimes"])
    per_weight = look_up("number of bits", str(bits), program["bytes"])
    for name, value in (("batch", batch), ("prompt", prompt), ("generated", generated)):
        check_positive(name, value)
    if price_per_hour is None:
        price = prices_by_device(None, HERE, currency, [chip]).get(chip.name)
    else:
        price = own_price(chip.name, price_per_hour, currency)
    cache_bytes = batch * (prompt + generated) * cache_per_token(shape)
    weights = shape.linear * per_weight[0] + shape.rest * per_weight[1]
    needed = weights + cache_bytes + framework_bytes(weights + cache_bytes)
    prefill_s, decode_s = times(shape, chip, program, per_weight, batch, prompt, generated)
    evidence = _evidence(program["evidence"], chip, shape)
    return Inference(
        device=chip.name,
        runtime=program["versions"],
        bits=bits,
        batch=batch,
        prompt=prompt,
        generated=generated,
        weights_bytes=weights,
        cache_bytes=cache_bytes,
        needed_bytes=needed,
        capacity_bytes=capacity_bytes(chip),
        fits=fits(needed, capacity_bytes(chip), "formula_margin"),
        prefill_s=prefill_s,
        decode_s=decode_s,
        prefill_factor=evidence["prefill"],
        decode_factor=evidence["decode"],
        checked=evidence["devices"] is not None,
        about=evidence["about"],
        price_per_hour=None if price is None else price.per_hour,
        currency=currency,
    )


def _evidence(known: list[dict[str, Any]], chip: Chip, shape: LanguageModel) -> dict[str, Any]:
    """Return the first entry that is for this chip and a model of this size."""
    return next(
        one
        for one in known
        if shape.parameters >= one["parameters"]
        and (one["devices"] is None or chip.name in one["devices"])
    )


def cache_per_token(shape: LanguageModel) -> int:
    """Return the bytes of keys and values that a token leaves behind, in 16 bits."""
    return 4 * shape.layers * shape.kv


def times(
    shape: LanguageModel,
    chip: Chip,
    program: Mapping[str, Any],
    per_weight: tuple[float, float],
    batch: int,
    prompt: int,
    generated: int,
) -> tuple[float, float]:
    """Return the seconds of a prefill and of one step of decoding: the model itself.

    Args:
        program: the numbers of a runtime, of inference.json.
        per_weight: bytes of a weight in a linear layer, and of one elsewhere.
        batch, prompt, generated: as for `estimate_inference`.
    """
    rate = chip.bandwidth_gb_per_s * 1e9 * program["bandwidth_share"]
    precision = "amp" if "fp16" in chip.peaks or "bf16" in chip.peaks else "fp32"
    arithmetic = chip.peak(precision) * chip.achieved(precision) * program["arithmetic_share"]
    host_s, layer_s = shape.layers * program["host_s"], shape.layers * program["layer_s"]

    def read_bytes(tokens: int) -> float:
        return shape.linear_met(tokens) * per_weight[0] + shape.head * per_weight[1]

    attention = 2 * shape.layers * shape.query * prompt**2
    flops = batch * (2 * shape.linear_used * prompt + attention)
    prefill_s = layer_s + read_bytes(batch * prompt) / rate + flops / arithmetic
    context = prompt + generated / 2
    cache_bytes = program["kv_times"] * batch * context * cache_per_token(shape)
    flops = 2 * batch * (shape.linear_used + shape.head)
    decode_s = layer_s + (read_bytes(batch) + cache_bytes) / rate + flops / arithmetic
    return max(host_s, prefill_s), max(host_s, decode_s)


def published_rates() -> list[dict[str, Any]]:
    """Return the published rates, each with the estimated one and its factor, in tokens/s."""
    with PUBLISHED_FILE.open(encoding="utf-8", newline="") as file:
        rows: list[dict[str, Any]] = list(csv.DictReader(file))
    for row in rows:
        for name in ("bits", "batch", "prompt", "generated"):
            row[name] = int(row[name])
        row["tokens_per_s"] = float(row["tokens_per_s"])
        answer = estimate_inference(
            row["model"],
            row["device"],
            bits=row["bits"],
            runtime=row["runtime"],
            batch=row["batch"],
            prompt=row["prompt"],
            generated=row["generated"],
        )
        row["estimated"], row["factor"] = {
            "prefill": (answer.prefill_tokens_per_s, answer.prefill_factor),
            "decode": (answer.decode_tokens_per_s, answer.decode_factor),
            "request": (row["batch"] * row["generated"] / answer.request_s, answer.decode_factor),
        }[row["measure"]]
    return rows


@cache
def inference_evidence() -> dict[str, Any]:
    """Return inference.json: the numbers of each runtime, and where they come from."""
    return dict(json.loads(INFERENCE_FILE.read_text(encoding="utf-8")))
