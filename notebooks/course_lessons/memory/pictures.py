"""The pictures of lesson 8: measured against estimated memory, and what each cure saves."""

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.patches import Rectangle
from torch import Tensor, nn

from course_lessons.memory.record import Record
from course_utils.estimate.chips import find_chip
from course_utils.estimate.memory import estimate_memory
from course_utils.estimate.memory_model import capacity_bytes
from course_utils.estimate.memory_result import HATCHED, Memory
from course_utils.figures import LOOKS, MUTED, Picture, lecture_axes, picture
from course_utils.text import format_bytes

CPU, GPU, TPU = (LOOKS[kind]["color"] for kind in ("cpu", "cuda", "xla"))
# Colours of what `Memory.parts` says.
PARTS = {
    "parameters": CPU,
    "gradients": GPU,
    "optimizer": "#CC79A7",
    "activations": "#F0E442",
    "framework": "#999999",
}
HATCHES = dict(zip(PARTS, (*HATCHED, "x"), strict=True))
# times as long as the baseline: bfloat16 takes 40 times where a CPU has no instructions for it
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
    return picture(axes, f"Memory over two training steps; the peak: {said}.", colors=8)


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
        return (numbers["context_bytes"] + (1 + numbers["gaps"]) * tensors) / 1e9

    rows = sorted(rows, key=lambda row: row["tensors"])
    larger = [
        (place, need(row["tensors_next"])) for place, row in enumerate(rows) if row["tensors_next"]
    ]
    room = room_bytes / 1e9
    right = sum(need(row["tensors"]) <= room for row in rows) + sum(
        size > room for _, size in larger
    )
    title = f"{right} of {len(rows) + len(larger)} verdicts are right"
    axes = lecture_axes(title, "networks, by the memory they need", "GB needed (estimated)")
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
        f"the card: {room:.1f} GB", (0, room), (0, 10), "data", "offset points", color=MUTED
    )
    axes.set_ylim(0, 1.1 * max(size for _, size in larger))
    for height, text, colour in (
        (0.93, "the next larger batch: did not fit", GPU),
        (0.25, "published: fitted", CPU),
    ):
        axes.annotate(text, (0.3, height), xycoords="axes fraction", color=colour)
    said = (
        f"{right} of {len(rows) + len(larger)} lie on the right side of the line at {room:.1f} GB"
    )
    return picture(
        axes,
        f"Estimated need of trainings that fitted and of those that did not: {said}.",
        colors=8,
    )


def draw_bytes(model: nn.Module, example: Tensor, optimizers: Mapping[str, Any]) -> Picture:
    """Draw what each parameter of a model takes in 32-bit training, by optimizer, in bytes."""
    parts = {name: _bytes_by_part(model, example, make) for name, make in optimizers.items()}
    axes = lecture_axes("What one parameter takes in training", "bytes, in 32-bit training")
    names = list(parts)
    labels = ("parameter", "gradient", "optimizer's state", "copy during the update")
    colours = (*list(PARTS.values())[:3], "white")
    lefts = [0.0] * len(names)
    for place, (label, colour) in enumerate(zip(labels, colours, strict=True)):
        widths = [sizes[place] for sizes in parts.values()]
        hatch = ("", "", "", "/")[place]
        style: Any = {"color": colour, "edgecolor": "black", "hatch": hatch, "height": 0.6}
        axes.barh(names, widths, left=lefts, label=label, **style)
        lefts = [left + width for left, width in zip(lefts, widths, strict=True)]
    for row, end in enumerate(lefts):
        axes.annotate(f"{end:.1f}", (end, row), (8, 0), textcoords="offset points", va="center")
    axes.set(xlim=(0, 1.12 * max(lefts)), xticks=range(0, 21, 4))
    axes.invert_yaxis()
    axes.legend(ncols=2, loc="upper center", bbox_to_anchor=(0.4, -0.14), edgecolor="none")
    said = ", ".join(f"{name} {end:.1f}" for name, end in zip(names, lefts, strict=True))
    return picture(axes, f"Bytes for each parameter by optimizer: {said}.", colors=10)


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
    axes = lecture_axes("Checkpointing keeps the inputs alone")
    rows: dict[str, dict[int, str]] = {
        "baseline: all is kept": dict.fromkeys(range(blocks), "kept"),
        "checkpointing, forward": {},
        f"backward, block {now + 1}": {now: "again"},
    }
    looks: dict[str, Any] = {
        "input": {"facecolor": CPU},
        "kept": {"facecolor": "#F0E442"},
        "again": {"facecolor": GPU, "hatch": "/"},
    }
    gone: dict[str, Any] = {"facecolor": "white", "edgecolor": MUTED, "linestyle": ":"}
    for height, held in enumerate(rows.values()):
        last = blocks if height < 2 else now + 1
        for block in range(blocks):
            x = 3.0 * block
            if block < last:
                axes.add_patch(Rectangle((x, height), 0.5, 0.6, **looks["input"]))
            look = looks[held[block]] | {"edgecolor": "black"} if block in held else gone
            for inside in range(3):
                axes.add_patch(Rectangle((x + 0.65 + 0.55 * inside, height), 0.5, 0.6, **look))
    for block in range(blocks):
        axes.annotate(f"block {block + 1}", (3 * block + 1.1, -0.2), ha="center")
    keys = ((0.0, "input, kept"), (4.3, "results inside, kept"), (10.4, "computed again"))
    for (x, text), look in zip(keys, looks.values(), strict=True):
        axes.add_patch(Rectangle((x, 3.25), 0.5, 0.4, edgecolor="black", **look))
        axes.annotate(text, (x + 0.7, 3.45), va="center")
    axes.set(xlim=(-0.2, 3 * blocks), ylim=(3.9, -0.6), xticks=[])
    axes.set_yticks([0.3, 1.3, 2.3], list(rows))
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
    kinds = ("parameters", "gradients", "optimizer")
    middles, names = [], []
    for side, way in enumerate(("DDP", "FSDP")):
        for rank in range(ranks):
            left = 4.0 * rank + side * (4 * ranks + 1.5)
            middles.append(left + 1.5)
            names.append(f"rank {rank}")
            for column, kind in enumerate(kinds):
                x = left + column
                low, high = (0.0, 1.0) if way == "DDP" else (rank / ranks, 1 / ranks)
                axes.add_patch(
                    Rectangle((x, 0), 0.9, 1, facecolor="white", edgecolor=MUTED, linestyle=":")
                )
                axes.add_patch(
                    Rectangle(
                        (x, low),
                        0.9,
                        high,
                        facecolor=PARTS[kind],
                        edgecolor="black",
                        label=kind if side == rank == 0 else None,
                    )
                )
        axes.annotate(
            way, (2 * ranks + side * (4 * ranks + 1.5), 1.06), ha="center", fontweight="bold"
        )
    axes.set(xlim=(-0.3, 8 * ranks + 1.5), ylim=(0, 1.16), yticks=[0, 0.25, 0.5, 0.75, 1])
    axes.set_xticks(middles, names)
    axes.tick_params(axis="x", length=0)
    axes.legend(ncols=3, loc="upper center", bbox_to_anchor=(0.5, -0.08), edgecolor="none")
    share = f"1/{ranks}"
    return picture(
        axes,
        f"Under DDP each of {ranks} ranks holds all parameters, gradients and optimizer state. "
        f"Under FSDP each holds another {share} of each of them.",
        colors=10,
    )


def draw_shards(needs: Mapping[int, Memory], chip: str) -> Picture:
    """Draw what each device needs when several share a model, beside the memory of a chip.

    Args:
        needs: what each needs, by the number of devices.
        chip: its name.
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
        colors=28,
    )


def draw_cures(found: Mapping[str, tuple[float, float]]) -> Picture:
    """Draw the peak memory and the time of a step for each way to train, relative to the baseline.

    Args:
        found: bytes, and the time relative to the first, by the name of the way; the first is the
            baseline.
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
    """Draw what a training needs as one bar, part by part, above the memory of each chip.

    Args:
        memory: estimated.
        rooms: bytes of each chip, by its name.
    """
    title = f"A batch of {memory.batch:,} needs {format_bytes(memory.needed_bytes)}"
    axes = lecture_axes(title, "GB")
    figure: Any = axes.figure
    figure.set_size_inches(12.8, 4.9)  # so that the menu is on the same screen
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
        ncols=5, loc="upper center", bbox_to_anchor=(0.45, -0.2), fontsize=20, columnspacing=0.8
    )
    said = (
        ", ".join(name for name, room in rooms.items() if memory.needed_bytes <= room)
        or "none of them"
    )
    needed = format_bytes(memory.needed_bytes)
    return picture(axes, f"Needed memory, {needed}, and that of chips: it fits {said}.", colors=32)
