"""Measure one section of what a GPU does: `python tools/gpu/measure.py SECTION --out DIR [--dry]`.

Every figure is appended to DIR/measurements.jsonl (times, as `course_utils.compare` keeps them) or
DIR/findings.jsonl (ratios, shares and bytes, each with its goal) as soon as it is known, so that
what comes after cannot take it away.
"""

import argparse
import gc
import json
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

import torch
from torch import nn

from course_utils.compare.comparison import Contestant, measure
from course_utils.compare.measurement import Measurement
from course_utils.compare.workloads import (
    CNN_STEP,
    CNN_WITH_COPY,
    ELEMENTWISE,
    PRODUCT,
    RNN_STEP,
    Workload,
    build_seeded,
    training_step,
    using_tf32,
)
from course_utils.copy_speed import copy_rate
from course_utils.data.models import ResNet50
from course_utils.devices import Device, pick_device, wait_for
from course_utils.estimate import count_work, estimate_memory, step_time
from course_utils.estimate.chips import all_chips
from course_utils.timing import time_call
from tools.gpu.check import chip_of
from tools.gpu.run import GOAL_MISSED
from tools.record import copied, measured_as_graph, precisions, read_sensors

SECONDS = 0.3  # for one figure
SENSORS = {"sm_clock_mhz": "MHz", "power_w": "W"}


@dataclass(frozen=True)
class Finding:
    """A figure that is not the time of one call.

    Attributes:
        name: what it says.
        value: the figure.
        unit: of the value, such as "ratio" or "bytes".
        low: what it should reach at least, if there is such a goal.
        high: what it should stay below, if there is such a goal.
    """

    name: str
    value: float
    unit: str
    low: float | None = None
    high: float | None = None

    @property
    def reached(self) -> bool:
        """Whether the goal, if there is one, was reached."""
        return (self.low is None or self.value >= self.low) and (
            self.high is None or self.value <= self.high
        )


Found = Iterator[Measurement | Finding]


def if_it_fits(find: Callable, *arguments: object, **options: object) -> Found:
    """Yield what `find` returns, or nothing where the card has too little memory for it."""
    try:
        yield find(*arguments, **options)
    except torch.OutOfMemoryError as error:
        print(f"left out, too large for this card: {arguments[1:]}. {str(error)[:80]}", flush=True)


def copies(device: Device, small: bool) -> Found:
    """Copies to the device and back, from pinned memory and from ordinary memory."""
    sizes = (4096, 65_536) if small else tuple(4**power for power in range(5, 15))
    who = Contestant(device, torch.get_num_threads())
    for copy in copy_rate(device, sizes_bytes=sizes, max_s=SECONDS).copies:
        yield copied(who, copy)


def products(device: Device, small: bool) -> Found:
    """Matrix products by side and precision, fp8 where the card has it, the best as a share of the
    data sheet's peak, and what the card says of its clock and power while it works."""
    sides, chip = (
        (64, 128) if small else (256, 512, 1024, 2048, 4096, 8192, 14336),
        chip_of(device.name),
    )
    for precision in (*precisions(device), *(("fp16",) if device.kind == "cuda" else ())):
        best = 0.0
        for side in sides:
            for found in if_it_fits(measure, device, PRODUCT, side, precision, max_s=SECONDS):
                yield found
                best = max(best, found.rate / 1e12)
        if chip and precision in chip.peak_tflop_per_s:
            share = best / chip.peak_tflop_per_s[precision]
            yield Finding(f"best product over the data sheet's peak, {precision}", share, "ratio")
    yield from while_working(device, sides[-2], precisions(device)[-1], 0.02 if small else 1.5)
    if device.kind == "cuda" and not torch.version.hip:
        yield of_both_libraries(device, 4096, precisions(device)[-1])
        if torch.cuda.get_device_capability() >= (8, 9):
            yield from if_it_fits(measured, device, FP8_PRODUCT, sides[-1], "fp8")


def of_both_libraries(device: Device, side: int, precision: str) -> Finding:
    """Return the speed of our product over that of the faster of cuBLAS and cuBLASLt, each asked
    for by its name.
    """
    choose, call = (
        torch.backends.cuda.preferred_blas_library,
        build_seeded(PRODUCT, side, device, precision),
    )
    before, seconds = choose(), []
    try:
        for library in (before, "cublas", "cublaslt"):
            choose(library)
            seconds.append(time_call(call, device=device, max_s=SECONDS).median_s)
    finally:
        choose(before)
    name = f"our product over the faster one of cuBLAS and cuBLASLt, {precision}, side {side}"
    return Finding(name, min(seconds[1:]) / seconds[0], "ratio", 0.9)


def while_working(device: Device, side: int, precision: str, for_s: float) -> Found:
    """Clock and power in the middle of so many seconds of products."""
    call = build_seeded(PRODUCT, side, device, precision)
    for _ in range(int(for_s / time_call(call, device=device, max_s=SECONDS).median_s)):
        call()  # a GPU queues them
    time.sleep(for_s / 2)
    found = read_sensors(device)
    wait_for(device)
    for name, value in found.items():
        yield Finding(name, value, SENSORS[name])


def fp8_product(device: Device, size: int, precision: str) -> Callable[[], torch.Tensor]:
    """Return a product of two float8 matrices with one scale each."""
    one = torch.ones((), device=device.torch_device)
    left, right = (
        torch.randn(size, size, device=device.torch_device).to(torch.float8_e4m3fn)
        for _ in range(2)
    )
    # `_scaled_mm` is PyTorch's only door to the fp8 units in every release from 2.1 to 2.15.
    return lambda: torch._scaled_mm(
        left, right.t(), scale_a=one, scale_b=one, out_dtype=torch.bfloat16
    )


FP8_PRODUCT = Workload(
    "Matrix product", fp8_product, "side", "FLOP", lambda side: 2.0 * side**3, ("fp8",)
)


def elementwise(device: Device, small: bool) -> Found:
    """Additions by size, and the bandwidth they reach as a share of a copy within the device's
    memory.
    """
    sizes = (1000, 100_000) if small else tuple(10**power for power in range(3, 9))
    for size in sizes:
        found = measure(device, ELEMENTWISE, size, "fp32", max_s=SECONDS)
        yield found
    rate = 12 * found.rate / 1e9  # two numbers of 4 bytes are read, one is written
    if chip := chip_of(device.name):
        share = rate / chip.bandwidth_gb_per_s
        yield Finding(
            "an addition's bandwidth over the data sheet's, largest size", share, "ratio", 0.9
        )
    source = torch.randn(sizes[-1], device=device.torch_device)
    target = torch.empty_like(source)
    copied = time_call(lambda: target.copy_(source), device=device, max_s=SECONDS).median_s
    yield Finding("bandwidth of an addition, largest size", rate, "GB/s")
    yield Finding(
        "an addition's bandwidth over a copy's within the device",
        rate / (8 * sizes[-1] / copied / 1e9),
        "ratio",
    )


def rnn(device: Device, small: bool) -> Found:
    """The RNN step by batch, eager and as a CUDA graph, and once compiled."""
    batches = (16,) if small else (16, 128, 1024, 8192)
    for batch in batches:
        yield from eager_and_graph(device, RNN_STEP, batch, "fp32")
    yield compiled(device, RNN_STEP, batches[0], "fp32")


def cnn(device: Device, small: bool) -> Found:
    """The CNN step by batch and precision, with and without the copy; at one batch as a CUDA graph
    and compiled.
    """
    batches = (8, 16) if small else tuple(2**power for power in range(4, 15, 2))
    for precision in precisions(device):
        for batch in batches:
            yield from if_it_fits(measure, device, CNN_STEP, batch, precision, max_s=SECONDS)
    for batch in batches:
        yield from if_it_fits(measure, device, CNN_WITH_COPY, batch, "fp32", max_s=SECONDS)
    yield from eager_and_graph(device, CNN_STEP, 64 if not small else batches[0], "fp32")
    yield compiled(device, CNN_STEP, 64 if not small else batches[0], "fp32")


def transformer_step(device: Device, size: int, precision: str) -> Callable[[], torch.Tensor]:
    """Return a training step of a small transformer encoder on `size` sequences of 128 tokens."""
    layer = nn.TransformerEncoderLayer(256, 4, 1024, dropout=0.0, batch_first=True)
    model = nn.Sequential(
        nn.TransformerEncoder(layer, 4, enable_nested_tensor=False), nn.Linear(256, 1)
    )
    inputs = torch.randn(size, 128, 256)
    return training_step(
        model, inputs, torch.zeros(size, 128, 1), nn.functional.mse_loss, device, precision
    )


def resnet_step(device: Device, size: int, precision: str) -> Callable[[], torch.Tensor]:
    """Return a training step of ResNet-50 on `size` photographs of 224 x 224."""
    inputs, targets = torch.randn(size, 3, 224, 224), torch.zeros(size, dtype=torch.int64)
    return training_step(
        ResNet50(), inputs, targets, nn.functional.cross_entropy, device, precision
    )


def resnet_forward(device: Device, size: int, precision: str) -> Callable[[], torch.Tensor]:
    """Return ResNet-50's forward pass on `size` photographs of 224 x 224, as pytorch-image-models
    times it.
    """
    model, inputs = (
        ResNet50().eval().to(device.torch_device),
        torch.randn(size, 3, 224, 224).to(device.torch_device),
    )
    dtype = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(precision)

    def forward() -> torch.Tensor:
        with torch.inference_mode(), torch.autocast(device.kind, dtype, enabled=dtype is not None):
            return model(inputs)

    return forward


TRANSFORMER = Workload(
    "Transformer step", transformer_step, "batch", "samples", float, ("fp32", "tf32", "bf16")
)
RESNET = Workload(
    "ResNet-50 step", resnet_step, "batch", "samples", float, ("fp32", "tf32", "bf16")
)
RESNET_FORWARD = Workload(
    "ResNet-50 forward", resnet_forward, "batch", "samples", float, ("fp32", "bf16", "fp16")
)


def transformer(device: Device, small: bool) -> Found:
    """A small transformer's step by batch and precision."""
    for precision in precisions(device)[-1:] if small else precisions(device):
        for batch in (1,) if small else (1, 8, 64, 256):
            yield from if_it_fits(measured, device, TRANSFORMER, batch, precision)


def resnet(device: Device, small: bool) -> Found:
    """ResNet-50 forward and in training, for comparison with what others published."""
    for batch in (1,) if small else (1, 4, 16, 64, 256):
        for precision in ("fp32",) if small else ("fp32", "fp16"):
            yield from if_it_fits(measured, device, RESNET_FORWARD, batch, precision)
    for precision in ("fp32",) if small else precisions(device):
        for batch in (1,) if small else (32, 256):
            yield from if_it_fits(measured, device, RESNET, batch, precision)


def timer(device: Device, small: bool) -> Found:
    """Our timer against CUDA events, and against triton's do_bench on matrices larger than the L2
    cache.
    """
    for side in (64,) if small else (1024, 4096):
        call = build_seeded(PRODUCT, side, device, "fp32")
        ours = time_call(call, device=device, max_s=SECONDS).median_s
        if device.kind == "cuda":
            yield Finding(
                f"timer over CUDA events, product of {side}",
                ours / event_seconds(call),
                "ratio",
                0.98,
                1.02,
            )
    if device.kind != "cuda":
        return
    from triton.testing import do_bench

    matrix = torch.randn(14336, 14336, device=device.torch_device, dtype=torch.bfloat16)
    ratios = []
    for _ in range(5):
        before, ours = (
            do_bench(lambda: matrix @ matrix, return_mode="median"),
            time_call(lambda: matrix @ matrix, device=device),
        )
        after = do_bench(lambda: matrix @ matrix, return_mode="median")
        ratios.append(2e3 * ours.median_s / (before + after))
    yield Finding(
        "timer over triton's do_bench, product of 14336", sorted(ratios)[2], "ratio", 0.98, 1.02
    )


def event_seconds(call: Callable[[], object], calls: int = 50) -> float:
    """Return the seconds of one call between two CUDA events."""
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    for _ in range(5):
        call()
    start.record()
    for _ in range(calls):
        call()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) / 1e3 / calls


def zeros(device: Device, small: bool) -> Found:
    """Products of zeros against products of random numbers: H. He (2024) found the former faster on
    an A100.
    """
    side = 128 if small else 8192
    dtype = torch.float32 if small else torch.bfloat16
    full = torch.randn(side, side, device=device.torch_device, dtype=dtype)
    empty = torch.zeros_like(full)
    ratios = []
    for _ in range(3 if small else 7):
        slow = time_call(lambda: full @ full, device=device, max_s=SECONDS).median_s
        fast = time_call(lambda: empty @ empty, device=device, max_s=SECONDS).median_s
        ratios.append(slow / fast)
    yield Finding(
        f"speed of a product of zeros over one of random numbers, side {side}",
        sorted(ratios)[len(ratios) // 2],
        "ratio",
    )


def memory(device: Device, small: bool) -> Found:
    """Peaks of memory of training steps, as PyTorch's allocator counts them, against the
    estimate.
    """
    for precision in ("fp32",) if small else ("fp32", "fp16"):
        for name, (build, shape, batch) in TEN_MODELS.items():
            example, size = torch.empty(1, *shape), 1 if small else batch
            estimated = estimate_memory(
                build(), example, batch=size, precision=precision
            ).tensors_bytes
            if device.kind == "cuda":
                for measured_bytes in if_it_fits(peak_bytes, device, name, precision):
                    yield Finding(f"peak memory, {name}, {precision}", measured_bytes, "bytes")
                    ratio = estimated / measured_bytes
                    yield Finding(
                        f"estimated over measured peak, {name}, {precision}",
                        ratio,
                        "ratio",
                        0.7,
                        1.3,
                    )


def step_of(device: Device, name: str, precision: str) -> Callable[[], torch.Tensor]:
    """Return a training step of one of the ten models on a batch of its own size."""
    build, shape, batch = TEN_MODELS[name]
    return training_step(
        build(), torch.randn(batch, *shape), torch.zeros(batch), sum_of, device, precision
    )


def peak_bytes(device: Device, name: str, precision: str) -> float:
    """Return the most bytes that the tensors of three training steps of a model took at once."""
    square = torch.ones(8, 8, device=device.torch_device, requires_grad=True)
    # cuBLAS takes its work space, in this thread and in that of the backward pass
    (square @ square).sum().backward()
    del square
    gc.collect()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()  # the work space, which cuBLAS keeps from model to model
    step = step_of(device, name, precision)
    for _ in range(3):
        step()
    wait_for(device)
    return float(torch.cuda.max_memory_allocated() - before)


def step_seconds(device: Device, name: str, precision: str) -> float:
    """Return the seconds of one training step of a model, without TF32."""
    with using_tf32(False):
        return time_call(step_of(device, name, precision), device=device, max_s=SECONDS).median_s


def encoder(width: int, layers: int) -> nn.Module:
    """Return a transformer encoder."""
    layer = nn.TransformerEncoderLayer(width, 8, 4 * width, dropout=0.0, batch_first=True)
    return nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)


def convolutions(channels: int, groups: int) -> nn.Module:
    """Return eight convolutions, each with a batch norm, either ordinary ones or one group for each
    channel.
    """
    layers = [nn.Conv2d(3, channels, 4, 4)]
    for _ in range(8):
        layers += [
            nn.Conv2d(channels, channels, 3, 1, 1, groups=groups),
            nn.BatchNorm2d(channels),
            nn.ReLU(),
        ]
    return nn.Sequential(*layers)


def dense(width: int, layers: int) -> nn.Module:
    """Return linear layers of one width."""
    return nn.Sequential(
        *(part for _ in range(layers) for part in (nn.Linear(width, width), nn.ReLU()))
    )


# shape of one sample, batch
TEN_MODELS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...], int]] = {
    "ResNet-50, 64": (ResNet50, (3, 224, 224), 64),
    "ResNet-50, 8": (ResNet50, (3, 224, 224), 8),
    "ResNet-50, 1": (ResNet50, (3, 224, 224), 1),
    "convolutions": (partial(convolutions, 128, 1), (3, 224, 224), 64),
    "depthwise convolutions": (partial(convolutions, 256, 256), (3, 224, 224), 64),
    "wide layers": (partial(dense, 4096, 4), (4096,), 8192),
    "narrow layers": (partial(dense, 256, 16), (256,), 1024),
    "transformer, 128 tokens": (partial(encoder, 512, 4), (128, 512), 64),
    "transformer, 1,024 tokens": (partial(encoder, 512, 4), (1024, 512), 8),
    "LSTM": (lambda: FirstOf(nn.LSTM(256, 512, 2, batch_first=True)), (64, 256), 128),
}


class FirstOf(nn.Module):
    """The first of a model's results."""

    def __init__(self, model: nn.Module):
        super().__init__()
        self.model = model

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return it."""
        return self.model(x)[0]


def estimate(device: Device, small: bool) -> Found:
    """Estimated over measured step times of ten models that the course can build itself."""
    chip = chip_of(device.name)
    if chip is None:
        print(
            f"{device.name} is not a chip that the course knows: there is no estimate to hold "
            "against it."
        )
        chip = all_chips()[0] if small else None
    for precision in ("fp32",) if small else ("fp32", "fp16"):
        for name, (build, shape, batch) in TEN_MODELS.items() if chip else ():
            work = count_work(
                build(), torch.empty(1, *shape), batch=1 if small else batch, precision=precision
            )
            estimated = step_time(work, chip).total_s
            if not small:
                for seconds in if_it_fits(step_seconds, device, name, precision):
                    ratio = estimated / seconds
                    yield Finding(
                        f"estimated over measured step, {name}, {precision}",
                        ratio,
                        "ratio",
                        0.5,
                        2.0,
                    )


def sum_of(results: torch.Tensor, _: torch.Tensor) -> torch.Tensor:
    """Return the sum of all results, which stands for a loss when work is counted."""
    return results.float().sum()


def eager_and_graph(device: Device, work: Workload, size: int, precision: str) -> Found:
    """Measure a workload as it is, and as a CUDA graph where there is CUDA."""
    for find in (measure, measured_as_graph) if device.kind == "cuda" else (measure,):
        yield from if_it_fits(find, device, work, size, precision, max_s=SECONDS)


def compiled(device: Device, work: Workload, size: int, precision: str) -> Measurement:
    """Return the time of one call of a workload under torch.compile; a rehearsal only records it,
    since that is fast.

    The recurrent layer itself and the optimizer stay as they are: torch.compile leaves them out.
    Not for "tf32": it reads PyTorch's old switch, which raises where the new one allows TF32
    (pytorch issue 166387).
    """
    backend = "inductor" if device.kind == "cuda" else "eager"
    build = lambda **options: torch.compile(work.build(**options), backend=backend)  # noqa: E731
    return measured(
        device, replace(work, name=f"{work.name}, compiled", build=build), size, precision
    )


def measured(device: Device, work: Workload, size: int, precision: str) -> Measurement:
    """Return the time of one call of a workload of this file."""
    return measure(device, work, size, precision, max_s=SECONDS)


SECTIONS = (
    copies,
    products,
    elementwise,
    rnn,
    cnn,
    transformer,
    resnet,
    timer,
    zeros,
    memory,
    estimate,
)


def main(arguments: list[str] | None = None) -> int:
    """Measure one section; return 0 when it came to its end, or `GOAL_MISSED` when a figure there
    missed its goal.
    """
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("section", choices=[section.__name__ for section in SECTIONS])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--dry", action="store_true")
    asked = parser.parse_args(arguments)
    device = pick_device("cpu" if asked.dry else "cuda")
    section = next(section for section in SECTIONS if section.__name__ == asked.section)
    missed = 0
    try:
        for found in section(device, asked.dry):
            name = "measurements.jsonl" if isinstance(found, Measurement) else "findings.jsonl"
            with (asked.out / name).open("a", encoding="utf-8") as file:
                file.write(json.dumps({"section": asked.section, **asdict(found)}) + "\n")
            if isinstance(found, Finding):
                print(
                    f"{found.name}: {found.value:.4g} "
                    f"{found.unit}{'' if found.reached else ' (goal missed)'}",
                    flush=True,
                )
                missed += not found.reached
            else:
                rate = f"{found.rate:.4g} {found.unit}/s"
                print(f"{found.workload}, {found.precision}, {found.size:,}: {rate}", flush=True)
    except Exception:
        traceback.print_exc()
        return 1
    return GOAL_MISSED if missed else 0


if __name__ == "__main__":
    sys.exit(main())
