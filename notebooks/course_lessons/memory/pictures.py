"""The pictures of lesson 7: measured against estimated memory, and what each cure saves and
costs.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from course_lessons.memory.record import Record
from course_utils.estimate.chips import find_chip
from course_utils.estimate.memory_model import capacity_bytes
from course_utils.estimate.memory_result import HATCHED, Memory
from course_utils.figures import LOOKS, MUTED, Picture, lecture_axes, picture
from course_utils.text import format_bytes

CPU, GPU, TPU = (LOOKS[kind]["color"] for kind in ("cpu", "cuda", "xla"))
GIB = 2**30
# Colours of what `Memory.parts` says.
PARTS = {
    "parameters": CPU,
    "gradients": GPU,
    "optimizer": "#CC79A7",
    "activations": "#F0E442",
    "framework": "#999999",
}
HATCHES = dict(zip(PARTS, (*HATCHED, "x"), strict=True))
# times as long as the training as it was: bfloat16 takes 40 times where a CPU has no instructions
# for it
LONGEST = 4
# A label to the right of a bar's end, legible where a line crosses it.
BESIDE: dict[str, Any] = {
    "padding": 8,
    "bbox": {"facecolor": "white", "edgecolor": "none", "pad": 1},
}


def draw_two_curves(measured: Record, estimated: Memory) -> Picture:
    """Draw the measured memory over time, and the estimated peak as a line across."""
    peaks = [format_bytes(size) for size in (measured.peak_bytes, estimated.tensors_bytes)]
    said = f"{peaks[0]} measured, {peaks[1]} estimated"
    axes = lecture_axes(f"Peak: {said}"[:45], "seconds", "MB in use")
    axes.step(
        measured.times_s, [used / 1e6 for used in measured.used_bytes], color=CPU, where="post"
    )
    peak = estimated.tensors_bytes / 1e6
    axes.axhline(peak, color=GPU, linestyle="--")
    axes.annotate("estimated peak", (0, peak), (4, 10), "data", "offset points", color=GPU)
    axes.annotate(
        "measured",
        (measured.times_s[-1], 0),
        (-4, 40),
        "data",
        "offset points",
        color=CPU,
        ha="right",
    )
    axes.set_ylim(0, 1.2 * peak)
    return picture(axes, f"Memory over two training steps; the peak: {said}.", colors=16)


def draw_questions(
    rows: Sequence[Mapping[str, Any]], numbers: Mapping[str, float], room_bytes: float
) -> Picture:
    """Draw for each network what its published batch needs and what the next larger one would need.

    Args:
        rows: with "tensors" and "tensors_next" in bytes, the latter None where no larger batch was
            tried.
        numbers: what stands for the framework.
        room_bytes: of the card.
    """

    def need(tensors: float) -> float:
        return (numbers["context_bytes"] + (1 + numbers["gaps"]) * tensors) / GIB

    rows = sorted(rows, key=lambda row: row["tensors"])
    larger = [
        (place, need(row["tensors_next"])) for place, row in enumerate(rows) if row["tensors_next"]
    ]
    room = room_bytes / GIB
    right = sum(need(row["tensors"]) <= room for row in rows) + sum(
        size > room for _, size in larger
    )
    title = f"{right} of {len(rows) + len(larger)} verdicts are right"
    axes = lecture_axes(title, "networks, by the memory they need", "GiB needed (estimated)")
    axes.plot([need(row["tensors"]) for row in rows], linestyle="", color=CPU, marker="o")
    axes.plot(
        *zip(*larger, strict=True),
        linestyle="",
        color=GPU,
        marker="s",
        fillstyle="none",
        markeredgewidth=2,
    )
    axes.axhline(room, color=MUTED)
    axes.annotate(
        f"the card: {room:g} GiB", (0, room), (0, 10), "data", "offset points", color=MUTED
    )
    axes.set_ylim(0, 1.1 * max(size for _, size in larger))
    for height, text, colour in (
        (0.93, "the next larger batch: did not fit", GPU),
        (0.25, "published: fitted", CPU),
    ):
        axes.annotate(text, (0.3, height), xycoords="axes fraction", color=colour)
    said = f"{right} of {len(rows) + len(larger)} lie on the right side of the line at {room:g} GiB"
    return picture(
        axes,
        f"Estimated need of trainings that fitted and of those that did not: {said}.",
        colors=12,
    )


def draw_cure(name: str, cured: Record, before: Record) -> Picture:
    """Draw the measured memory of two steps with a cure, and in grey that of the training as it
    was.
    """
    axes = lecture_axes(
        f"{name}: {format_bytes(cured.peak_bytes)} at the peak",
        "share of the two steps",
        "MB in use",
    )
    whole, part = (
        ([time / one.times_s[-1] for time in one.times_s], [used / 1e6 for used in one.used_bytes])
        for one in (before, cured)
    )
    axes.fill_between(*whole, step="post", color=MUTED, alpha=0.25, linewidth=0)
    axes.step(*part, color=CPU, where="post")
    peak, text = before.peak_bytes / 1e6, format_bytes(before.peak_bytes)
    axes.annotate(f"as it was: {text}", (0, peak), (4, 8), "data", "offset points", color=MUTED)
    axes.set_ylim(0, 1.2 * peak)
    said = f"the peak is {format_bytes(cured.peak_bytes)} in place of {text}"
    return picture(axes, f"Memory over two training steps, {name}: {said}.", colors=8)


def draw_shards(needs: Mapping[int, Memory], chip: str) -> Picture:
    """Draw what each device needs when several share a model (`needs`, by number), beside the
    memory of a chip.
    """
    fit = [devices for devices, need in needs.items() if need.fits(chip)]
    title = f"It fits from {fit[0]} devices on" if fit else "It fits on none of these"
    axes = lecture_axes(title, "GB in each device")
    lefts = dict.fromkeys(needs, 0.0)
    for part, hatch in HATCHES.items():
        sizes = {devices: need.parts()[part] / 1e9 for devices, need in needs.items()}
        where: Any = {
            "y": [str(devices) for devices in needs],
            "left": list(lefts.values()),
            "height": 0.6,
        }
        axes.barh(width=list(sizes.values()), color=PARTS[part], hatch=hatch, label=part, **where)
        lefts = {devices: left + sizes[devices] for devices, left in lefts.items()}
    room = capacity_bytes(find_chip(chip)) / 1e9
    axes.axvline(room, color="black", linestyle=":")
    axes.annotate(chip, (room, 0.0), (6, 8), ("data", "axes fraction"), "offset points")
    axes.set_ylabel("devices")
    axes.invert_yaxis()
    axes.legend(
        ncols=5, loc="upper center", bbox_to_anchor=(0.45, -0.12), fontsize=20, columnspacing=0.8
    )
    said = ", ".join(
        f"{devices}: {format_bytes(need.needed_bytes)}" for devices, need in needs.items()
    )
    return picture(
        axes,
        f"Needed by each of so many devices, beside the memory of the {chip}: {said}.",
        colors=12,
    )


def draw_cures(found: Mapping[str, tuple[float, float]]) -> Picture:
    """Draw the peak memory and the time of a step for each way to make it fit, relative to the
    first.

    Args:
        found: bytes, and the time relative to the first, by the name of the way; the first is the
            training as it was.
    """
    whole, _ = next(iter(found.values()))
    axes = lecture_axes(
        "What each cure saves, and what it costs", "peak memory and time of a step, relative"
    )
    for place, (size, time) in enumerate(found.values()):
        for shift, part, colour, what in (
            (-0.2, size / whole, CPU, "memory"),
            (0.2, time, GPU, "time"),
        ):
            bars = axes.barh([place + shift], [min(part, LONGEST)], height=0.38, color=colour)
            label = f"{what} {part:.2f}" if part <= LONGEST else f"{what} {part:.0f}, off the scale"
            axes.bar_label(bars, [label], **BESIDE)
    axes.axvline(1, color=MUTED, linestyle=":", zorder=0)
    axes.set_yticks(range(len(found)), list(found))
    axes.invert_yaxis()
    axes.margins(x=0.25 if max(time for _, time in found.values()) <= LONGEST else 0.6)
    said = ", ".join(
        f"{name} {size / whole:.0%} and {time:.0%}" for name, (size, time) in found.items()
    )
    return picture(
        axes, f"Peak memory and time of each way to train, relative to the first: {said}.", colors=8
    )


def draw_chips(memory: Memory, rooms: Mapping[str, float]) -> Picture:
    """Draw what a training needs as one bar, part by part, above the memory of each chip (`rooms`:
    bytes, by name).
    """
    axes = lecture_axes(
        f"A batch of {memory.batch:,} needs {format_bytes(memory.needed_bytes)}", "GB"
    )
    left = 0.0
    for name, size in memory.parts().items():
        axes.barh(
            ["needed"],
            [size / 1e9],
            left=left,
            color=PARTS[name],
            label=name,
            height=0.7,
            hatch=HATCHES[name],
        )
        left += size / 1e9
    for name, room in rooms.items():
        fits = memory.needed_bytes <= room
        bars = axes.barh([name], [room / 1e9], color=TPU if fits else "#DDDDDD", height=0.5)
        axes.bar_label(bars, ["fits" if fits else "too small"], **BESIDE)
    axes.axvline(left, color="black", linestyle=":")
    axes.invert_yaxis()
    axes.margins(x=0.15)
    axes.legend(
        ncols=5, loc="upper center", bbox_to_anchor=(0.45, -0.12), fontsize=20, columnspacing=0.8
    )
    said = (
        ", ".join(name for name, room in rooms.items() if memory.needed_bytes <= room)
        or "none of them"
    )
    needed = format_bytes(memory.needed_bytes)
    return picture(axes, f"Needed memory, {needed}, and that of chips: it fits {said}.", colors=32)
