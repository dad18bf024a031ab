"""The pictures of lesson 9: measured against estimated memory, and what each cure saves."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from matplotlib.patches import Rectangle
from torch import Tensor, nn

from course_lessons.data.models import ResNet50
from course_lessons.memory.record import Record
from course_tools.estimate.memory.estimate_memory import estimate_memory
from course_tools.estimate.memory.memory_result import Memory
from course_tools.figures import LOOKS, MUTED, PINK, YELLOW, Picture, lecture_axes, picture
from course_utils.units import format_bytes

CPU, GPU = LOOKS["cpu"]["color"], LOOKS["cuda"]["color"]
PARTS = {"parameters": CPU, "gradients": GPU, "optimizer": PINK}
# times as long as the baseline: bfloat16 takes 40 times where a CPU has no instructions for it
LONGEST = 4
# A label to the right of a bar's end, legible where a line crosses it.
BESIDE: dict[str, Any] = {
    "padding": 8,
    "bbox": {"facecolor": "white", "edgecolor": "none", "pad": 1},
}


def draw_resnet_step() -> Picture:
    """Draw what fills the memory over a training step of ResNet-50 with 64 photographs."""
    photograph = torch.empty(1, 3, 224, 224)
    return estimate_memory(ResNet50(), photograph, batch=64, precision="fp32").plot()


def draw_two_curves(measured: Record, estimated: Memory) -> Picture:
    """Draw the measured memory over time, and the estimated peak as a line across."""
    peaks = [format_bytes(size) for size in (measured.peak_bytes, estimated.tensors_bytes)]
    said = f"{peaks[0]} measured, {peaks[1]} estimated"
    axes = lecture_axes(f"Peak: {said}"[:45], "seconds", "MB in use")
    used = [size / 1e6 for size in measured.used_bytes]
    peak = estimated.tensors_bytes / 1e6
    axes.step(measured.times_s, used, color=CPU, where="post")
    axes.axhline(peak, color=GPU, linestyle="--")
    axes.text(0, 1.03 * peak, "estimated peak", color=GPU)
    axes.text(0.98 * measured.times_s[-1], 0.05 * peak, "measured", color=CPU, ha="right")
    axes.set_ylim(0, 1.2 * peak)
    return picture(axes, f"Memory over two training steps; the peak: {said}.", colors=8)


def draw_questions(
    rows: Sequence[Mapping[str, Any]], numbers: Mapping[str, float], room_bytes: float
) -> Picture:
    """Draw what runs that fitted are estimated to need, those that did not, and the card's memory.

    Args:
        rows: with "tensors" of the published batch, which fitted, and "tensors_next" of the next
            larger one, which did not, in bytes; the latter None where no larger batch was tried.
        numbers: what stands for the framework.
        room_bytes: of the card.
    """

    def needs(part: str) -> list[float]:
        tensors = sorted(row[part] for row in rows if row[part])
        return [(numbers["context_bytes"] + (1 + numbers["gaps"]) * size) / 1e9 for size in tensors]

    room = room_bytes / 1e9
    fitted, larger = needs("tensors"), needs("tensors_next")
    right = sum(size <= room for size in fitted) + sum(size > room for size in larger)
    title = f"{right} of {len(fitted) + len(larger)} verdicts are right"
    axes = lecture_axes(title, "GB needed (estimated)")
    for row, (sizes, color) in enumerate(((fitted, CPU), (larger, GPU))):
        for place, size in enumerate(sizes):
            is_right = (size <= room) == (row == 0)
            marker, shade = ("o", color) if is_right else ("X", "black")
            axes.plot(size, row + 0.1 * (place % 5 - 2), marker, color=shade, markersize=11)
    axes.axvline(room, color=MUTED)
    axes.text(room, -0.52, f"the card: {room:.1f} GB ", color=MUTED, ha="right", va="center")
    axes.text(room, 1.48, " X: a wrong verdict", va="center")
    axes.set_yticks((0, 1), ("these\nfitted", "these\ndid not"))
    axes.set(xlim=(0, 1.05 * max(larger)), ylim=(1.7, -0.7))
    alt = f"{title}: estimated needs of training runs that fitted, below the card's {room:.1f} GB "
    return picture(axes, alt + "in all but the wrong ones, and of runs that did not.", colors=16)


def draw_bytes(model: nn.Module, example: Tensor, optimizers: Mapping[str, Any]) -> Picture:
    """Draw what each parameter of a model takes in 32-bit training, by optimizer, in bytes."""
    parts = {name: _bytes_by_part(model, example, make) for name, make in optimizers.items()}
    sums = [round(sum(part)) for part in parts.values()]
    title = f"{min(sums)} to {max(sums)} bytes for each parameter"
    axes = lecture_axes(title, "bytes, in 32-bit training")
    labels = ("parameter", "gradient", "optimizer's state", "copy during the update")
    colours, hatches = (*PARTS.values(), "white"), ("", "", "", "/")
    ends = dict.fromkeys(parts, 0.0)
    for place, label in enumerate(labels):
        widths = [sizes[place] for sizes in parts.values()]
        look: Any = {"color": colours[place], "edgecolor": "black", "hatch": hatches[place]}
        axes.barh(list(ends), widths, left=list(ends.values()), height=0.6, label=label, **look)
        ends = {name: end + parts[name][place] for name, end in ends.items()}
    for row, end in enumerate(ends.values()):
        axes.text(end + 0.2, row, f"{end:.0f}", va="center")
    axes.set(xlim=(0, 1.12 * max(ends.values())), xticks=range(0, 21, 4))
    axes.invert_yaxis()
    axes.legend(ncols=2, loc="upper center", bbox_to_anchor=(0.4, -0.14), edgecolor="none")
    said = ", ".join(f"{name} {end:.0f}" for name, end in ends.items())
    return picture(axes, f"Bytes per parameter by optimizer: {said}.", colors=10)


def _bytes_by_part(model: nn.Module, example: Tensor, optimizer: Any) -> tuple[float, ...]:
    """Return bytes of a parameter, its gradient, the state, and what the update makes of it."""
    found = estimate_memory(model, example, precision="fp32", optimizer=optimizer)
    update = [moment for moment in found.moments if moment.phase == "optimizer"]
    last = max(update, key=lambda moment: moment.total)
    state = found.moments[0].optimizer
    count = sum(parameter.numel() for parameter in model.parameters())
    sizes = (last.parameters, last.gradients, state, last.optimizer - state)
    return tuple(size / count for size in sizes)


def draw_checkpointing(blocks: int = 5, now: int = 3) -> Picture:
    """Draw what is in memory with and without checkpointing, block by block.

    Args:
        blocks: of the model.
        now: the block whose backward pass runs in the last row.
    """
    axes = lecture_axes("Checkpointing keeps only the inputs")
    looks: dict[str, Any] = {
        "input": {"facecolor": CPU, "edgecolor": "black"},
        "results inside": {"facecolor": YELLOW, "edgecolor": "black"},
        "computed again": {"facecolor": GPU, "edgecolor": "black", "hatch": "/"},
        "freed": {"facecolor": "white", "edgecolor": MUTED, "linestyle": ":"},
    }
    _, kept, again, freed = looks

    def box(x: float, y: float, kind: str) -> None:
        axes.add_patch(Rectangle((x, y), 0.5, 0.6, clip_on=False, **looks[kind]))

    for block in range(blocks):
        inner = (kept, freed, again if block == now else freed)
        for row, kind in enumerate(inner):
            box(3 * block, row, "input" if row < 2 or block <= now else freed)
            for result in range(3):
                box(3 * block + 0.65 + 0.55 * result, row, kind)
        axes.text(3 * block + 1.1, -0.2, f"block {block + 1}", ha="center")
    for x, kind in zip((-2.6, 0.6, 6.0, 11.6), looks, strict=True):
        box(x, 3.2, kind)
        axes.text(x + 0.7, 3.5, kind, va="center")
    rows = ("baseline: all is kept", "checkpointing, forward", f"backward, block {now + 1}")
    axes.set_yticks([0.3, 1.3, 2.3], rows)
    axes.set(xlim=(-0.2, 3 * blocks), ylim=(3.9, -0.6), xticks=[])
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)
    return picture(
        axes,
        "Without checkpointing every block keeps its input and its inner results. With it every "
        f"block keeps its input alone, and when the backward pass reaches block {now + 1}, the "
        "inner results of that block are computed again.",
        colors=12,
    )


def draw_holders(ranks: int = 4) -> Picture:
    """Draw which part of a model each rank holds, under DDP and under FSDP."""
    axes = lecture_axes("DDP copies the model, FSDP shares it out", "", "share of the model")
    empty: Any = {"facecolor": "white", "edgecolor": MUTED, "linestyle": ":"}
    middles = []
    for way, start in (("DDP", 0.0), ("FSDP", 4 * ranks + 1.5)):
        for rank in range(ranks):
            low, high = (0.0, 1.0) if way == "DDP" else (rank / ranks, 1 / ranks)
            left = start + 4 * rank
            for column, colour in enumerate(PARTS.values()):
                axes.add_patch(Rectangle((left + column, 0), 0.9, 1, **empty))
                held = Rectangle((left + column, low), 0.9, high, facecolor=colour, edgecolor="k")
                axes.add_patch(held)
            middles.append(left + 1.5)
        axes.text(start + 2 * ranks, 1.06, way, ha="center", fontweight="bold")
    axes.set(xlim=(-0.3, 8 * ranks + 1.5), ylim=(0, 1.16), yticks=[0, 0.25, 0.5, 0.75, 1])
    axes.set_xticks(middles, [f"rank {rank}" for rank in range(ranks)] * 2)
    axes.tick_params(axis="x", length=0)
    keys = [Rectangle((0, 0), 1, 1, facecolor=colour, label=kind) for kind, colour in PARTS.items()]
    place = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.08)}
    axes.legend(handles=keys, ncols=3, edgecolor="none", **place)
    return picture(
        axes,
        f"Under DDP each of {ranks} ranks holds all parameters, gradients and optimizer state. "
        f"Under FSDP each holds a different 1/{ranks} of each of them.",
        colors=10,
    )


def draw_cures(peaks_bytes: Mapping[str, int], times_s: Mapping[str, float]) -> Picture:
    """Draw the peak memory and the CPU time of each way to train, relative to the first."""
    first = next(iter(peaks_bytes))
    memory = {name: size / peaks_bytes[first] for name, size in peaks_bytes.items()}
    least = min(memory, key=lambda name: memory[name])
    title = f"{least}: {memory[least]:.0%} of the peak memory"
    axes = lecture_axes(title, "peak memory, and time on this CPU, baseline = 1")
    time = {name: times_s[name] / times_s[first] for name in peaks_bytes}
    for what, values, shift, colour in (("memory", memory, -0.2, CPU), ("time", time, 0.2, GPU)):
        for place, value in enumerate(values.values()):
            bars = axes.barh([place + shift], [min(value, LONGEST)], height=0.38, color=colour)
            label = f"{value:.2f}" if value <= LONGEST else f"{value:.0f}, off the scale"
            axes.bar_label(bars, [f"{what} {label}"], **BESIDE)
    axes.axvline(1, color=MUTED, linestyle=":", zorder=0)
    axes.set_yticks(range(len(memory)), list(memory))
    axes.invert_yaxis()
    axes.margins(x=0.25 if max(time.values()) <= LONGEST else 0.6)
    said = ", ".join(f"{name} {memory[name]:.0%} and {time[name]:.0%}" for name in memory)
    return picture(
        axes,
        f"Peak memory and CPU time of each way to train, relative to the first: {said}.",
        colors=8,
    )
