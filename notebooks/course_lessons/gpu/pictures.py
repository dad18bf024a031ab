"""The pictures of the GPU lesson."""

from collections.abc import Mapping, Sequence
from itertools import cycle
from statistics import fmean
from typing import Any

import numpy as np
from matplotlib.ticker import FuncFormatter

from course_utils.compare.charts import label_ends, log_axes, look_of, note_doubts
from course_utils.compare.results import machines_elsewhere
from course_utils.copy_speed import CopyRate
from course_utils.figures import LOOKS, MUTED, Picture, lecture_axes, picture
from course_utils.text import format_count, format_seconds


def draw_lanes(
    cpu_cores: int, lanes_a_core: int, gpu: str, blocks: int, lanes_a_block: int
) -> Picture:
    """Draw one dot for each float32 that a CPU, and a GPU beside it, can work on at the same
    moment.

    A core has as many lanes as its vector register holds float32 numbers. The GPU's blocks are its
    multiprocessors.
    """
    axes = lecture_axes("Each dot is one number being processed")
    _draw_blocks(axes, 0, 3, cpu_cores, lanes_a_core, LOOKS["cpu"]["color"])
    _draw_blocks(axes, 4, 12, blocks, lanes_a_block, LOOKS["cuda"]["color"])
    names = (
        f"this CPU\n{cpu_cores} cores x {lanes_a_core}",
        f"{gpu}\n{blocks} multiprocessors x {lanes_a_block}",
    )
    for x, name, kind in zip((1, 10), names, ("cpu", "cuda"), strict=True):
        axes.text(x, 11.2, name, ha="center", va="bottom", fontsize=20, color=LOOKS[kind]["color"])
    axes.set(xlim=(-0.5, 16.5), ylim=(-0.5, 13))
    axes.axis("off")
    total, ours = blocks * lanes_a_block, cpu_cores * lanes_a_core
    return picture(
        axes,
        f"On the left {ours} dots for the lanes of this CPU, {lanes_a_core} in each of its "
        f"{cpu_cores} cores. On the "
        f"right {total:,} dots for the lanes of {gpu}, {lanes_a_block} in each of its {blocks} "
        "multiprocessors.",
        colors=16,
    )


def _draw_blocks(axes, left: float, width: int, blocks: int, lanes: int, color: str) -> None:
    """Draw `blocks` boxes from the top down. The dots are equally dense in every box, so that areas
    can be compared.
    """
    wide = 2 ** ((lanes.bit_length()) // 2)  # dots in a row of a box: 4 for 16 lanes, 16 for 128
    high = -(-lanes // wide)
    across, down = wide / 16, high / 8  # from one box to the next
    columns = max(int(width / across), -(-blocks // int(11 / down)))
    block, lane = np.arange(blocks)[:, None], np.arange(lanes)
    x, y = left + across * (block % columns), 11 - down * (block // columns + 1)
    axes.bar(x[:, 0], 0.85 * down, 0.9 * across, y[:, 0], align="edge", fc="none", ec=MUTED, lw=0.8)
    xs, ys = (
        x + 0.9 * across * (lane % wide + 0.5) / wide,
        y + 0.85 * down * (lane // wide + 0.5) / high,
    )
    axes.scatter(xs, ys, s=4, color=color, linewidths=0)


def draw_copies(rate: CopyRate, kind: str) -> Picture:
    """Draw the time of a copy against its size, with the latency and the bandwidth that are read
    off it.
    """
    axes = lecture_axes(
        "A fixed start, then time for every byte", "bytes copied (log.)", "time of one copy (log.)"
    )
    look: dict[str, Any] = LOOKS.get(kind, LOOKS["cuda"])
    ends = []
    for line, ((direction, pinned), curve) in zip(
        ("-", "--", "-.", ":"), rate.curves().items(), strict=False
    ):
        sizes, times = [item.size_bytes for item in curve], [item.median_s for item in curve]
        axes.plot(sizes, times, **{**look, "linestyle": line})
        label = f"{direction}{', pinned' * pinned}: {curve[-1].rate_gb_per_s:.3g} GB/s"
        ends.append((sizes[-1], times[-1], label, look["color"]))
    axes.axhline(
        start_s := min(curve[0].median_s for curve in rate.curves().values()),
        color=MUTED,
        linestyle=":",
    )
    axes.text(
        ends[-1][0],
        start_s,
        f"latency {format_seconds(start_s)}",
        color=MUTED,
        va="bottom",
        ha="right",
    )
    axes.set(xscale="log", yscale="log")
    axes.set_xticks([2**10, 2**15, 2**20, 2**25], ["1 KiB", "32 KiB", "1 MiB", "32 MiB"])
    axes.yaxis.set_major_formatter(FuncFormatter(lambda seconds, _: format_seconds(seconds)))
    axes.minorticks_off()
    label_ends(axes, ends)
    note_doubts(axes, rate.copies)
    said = "; ".join(repr(rate).split("\n  ")[1:])
    return picture(axes, f"Time of a copy against its size on {rate.device}. {said}.", colors=8)


def draw_losses(title: str, losses: dict[str, Sequence[float]]) -> Picture:
    """Draw one line a training run, each point the mean loss of five steps, with its name at its
    end. At most four.
    """
    axes = lecture_axes(title, "step", "loss, mean of five steps")
    losses = {
        name: [fmean(values[k : k + 5]) for k in range(0, len(values), 5)]
        for name, values in losses.items()
    }
    # No colour that means a device.
    looks = (
        ("black", "solid", 3),
        ("#CC79A7", "dashed", 3),
        (MUTED, "dotted", 5),
        ("black", "dashdot", 3),
    )
    ends = []
    for (color, line, width), (name, values) in zip(looks, losses.items(), strict=False):
        steps = [5 * (point + 1) for point in range(len(values))]
        axes.plot(steps, values, color=color, linestyle=line, linewidth=width)
        ends.append((steps[-1], values[-1], f"{name} ({line})", color))
    axes.margins(y=0.25)
    axes.locator_params(axis="y", nbins=4)
    label_ends(axes, ends)
    words = ", ".join(f"{name} at {values[-1]:.3f}" for name, values in losses.items())
    return picture(axes, f"Loss against the training step. At the end: {words}.", colors=8)


def draw_batches(
    live: Sequence[tuple[int, float]],
    name: str,
    kind: str,
    published: Mapping[str, Sequence[tuple[int, float]]],
) -> Picture:
    """Draw (batch, images a second), smallest batch first: this device solid, published and
    recorded ones dashed.
    """
    recorded = [result.select("ResNet-50 forward", "fp32") for result in machines_elsewhere()]
    rows = (each.of(label) for each in recorded for label in each.labels)
    measured = {f"{row[0].device}, measured": [(one.size, one.rate) for one in row] for row in rows}
    axes = lecture_axes(
        "Large batches fill a device", "images in the batch (log.)", "images a second (log.)"
    )
    styles = zip({**published, **measured}.items(), cycle(("--", ":", "-.")), strict=False)
    curves = [
        (f"{name}, now", kind, live, "-"),
        *[(label, "cuda", points, style) for (label, points), style in styles],
    ]
    for _, of_kind, points, style in curves:
        axes.plot(*zip(*points, strict=True), **{**look_of(of_kind), "linestyle": style})
    log_axes(axes, sorted({batch for _, _, points, _ in curves for batch, _ in points}))
    label_ends(
        axes,
        [(*points[-1], label, look_of(of_kind)["color"]) for label, of_kind, points, _ in curves],
    )
    ends = "; ".join(
        f"{label}: {format_count(points[-1][1])} at {points[-1][0]:,}"
        for label, _, points, _ in curves
    )
    return picture(axes, f"Images a second against the images in a batch. {ends}.", colors=8)
