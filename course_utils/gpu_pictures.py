"""The pictures of the GPU lesson."""

from collections.abc import Sequence

from matplotlib.patches import Rectangle

from course_utils.figures import LOOKS, MUTED, Picture, label_end, lecture_axes, picture
from course_utils.moves import CopyRate
from course_utils.record import Recording
from course_utils.timing import format_seconds


def draw_lanes(cpu_cores: int, lanes_a_core: int, gpu: str, blocks: int, lanes_a_block: int) -> Picture:
    """Draw one dot for each float32 that a CPU, and a GPU beside it, can work on at the same moment.

    Args:
        cpu_cores: cores of the CPU.
        lanes_a_core: float32 numbers in one vector register of a core.
        gpu: the GPU's name.
        blocks: its streaming multiprocessors.
        lanes_a_block: float32 lanes in each.
    """
    axes = lecture_axes("Every dot is one number worked on at a time")
    _draw_blocks(axes, 0, cpu_cores, lanes_a_core, LOOKS["cpu"]["color"])
    _draw_blocks(axes, 4, blocks, lanes_a_block, LOOKS["cuda"]["color"])
    names = (f"this CPU\n{cpu_cores} cores x {lanes_a_core}", f"{gpu}\n{blocks} multiprocessors x {lanes_a_block}")
    for x, name, kind in zip((1, 10), names, ("cpu", "cuda"), strict=True):
        axes.text(x, 11.2, name, ha="center", va="bottom", fontsize=20, color=LOOKS[kind]["color"])
    axes.set(xlim=(-0.5, 16.5), ylim=(-0.5, 13), aspect="auto")
    axes.axis("off")
    total, ours = blocks * lanes_a_block, cpu_cores * lanes_a_core
    return picture(
        axes,
        f"On the left {ours} dots for the lanes of this CPU, {lanes_a_core} in each of its {cpu_cores} cores. On the "
        f"right {total:,} dots for the lanes of {gpu}, {lanes_a_block} in each of its {blocks} multiprocessors.",
    )


def _draw_blocks(axes, left: float, blocks: int, lanes: int, color: str) -> None:
    """Draw `blocks` squares, twelve in a row, from `left` on and from the top down, each with its lanes as dots."""
    side = max(1, round(lanes**0.5 * 1.4))  # dots in a row of a square, which is wider than high
    xs, ys = [], []
    for block in range(blocks):
        x, y = left + block % 12, 10 - block // 12
        axes.add_patch(Rectangle((x, y), 0.9, 0.85, facecolor="none", edgecolor=MUTED, linewidth=0.8))
        for lane in range(lanes):
            xs.append(x + 0.06 + 0.8 * (lane % side) / side + 0.02)
            ys.append(y + 0.06 + 0.75 * (lane // side) / max(1, -(-lanes // side)))
    axes.scatter(xs, ys, s=2.5, color=color, linewidths=0)


def draw_copies(rate: CopyRate, kind: str) -> Picture:
    """Draw the time of a copy against its size, with the latency and the bandwidth that are read off it."""
    axes = lecture_axes("A copy costs a start and then its bytes", "bytes copied", "seconds for one copy")
    words = []
    for number, ((direction, pinned), curve) in enumerate(rate.curves().items()):
        name = f"{direction}{', pinned' if pinned else ''}"
        sizes, times = [item.size_bytes for item in curve], [item.median_s for item in curve]
        look = {**LOOKS.get(kind, LOOKS["cuda"]), "linestyle": ("-", "--", "-.", ":")[number % 4]}
        axes.plot(sizes, times, **look)
        label_end(axes, sizes[-1], times[-1], f"{curve[-1].rate_gb_per_s:.3g} GB/s\n{name}", look["color"])
        words.append(
            f"{name}: {format_seconds(times[0])} for {sizes[0]:,} bytes, "
            f"{curve[-1].rate_gb_per_s:.3g} GB/s for {sizes[-1]:,} bytes"
        )
    start_s = min(curve[0].median_s for curve in rate.curves().values())
    axes.axhline(start_s, color=MUTED, linewidth=2, linestyle=":")
    axes.text(sizes[-1], start_s, f"latency {format_seconds(start_s)}", color=MUTED, va="bottom", ha="right")
    axes.set(xscale="log", yscale="log")
    axes.set_xticks([2**10, 2**15, 2**20, 2**25], ["1 KiB", "32 KiB", "1 MiB", "32 MiB"])
    _seconds_ticks(axes)
    return picture(axes, f"Time of a copy against its size on {rate.device}. " + "; ".join(words) + ".")


def _seconds_ticks(axes) -> None:
    low, high = axes.get_ylim()
    ticks = [10.0**power for power in range(-8, 2) if low <= 10.0**power <= high]
    axes.set_yticks(ticks, [format_seconds(tick) for tick in ticks])
    axes.minorticks_off()


def draw_rates(title: str, unit: str, rows: Sequence[tuple[str, str, float]]) -> Picture:
    """Draw one bar a row, with its value at its end.

    Args:
        title: 45 characters at most.
        unit: of the values.
        rows: a label, a kind of device for the colour, and a value for each bar, top to bottom.
    """
    axes = lecture_axes(title, unit)
    for place, (_, kind, value) in enumerate(rows):
        axes.barh(-place, value, color=LOOKS.get(kind, LOOKS["cuda"])["color"], hatch="//" if kind != "cpu" else None)
        axes.annotate(f"{value:.3g}", (value, -place), xytext=(8, 0), textcoords="offset points", va="center")
    axes.set_yticks([-place for place in range(len(rows))], [label for label, _, _ in rows])
    axes.spines["left"].set_visible(False)
    axes.margins(x=0.12)
    return picture(axes, f"{unit}: " + "; ".join(f"{label}, {value:.3g}" for label, _, value in rows) + ".")


def draw_losses(title: str, losses: dict[str, Sequence[float]]) -> Picture:
    """Draw one line a training run, the loss of each step, with its name at its end."""
    axes = lecture_axes(title, "step", "loss of the batch")
    looks = zip(LOOKS.values(), losses.items(), strict=False)
    for look, (name, values) in looks:
        axes.plot(range(1, len(values) + 1), values, **{**look, "markersize": 5})
        label_end(axes, len(values), values[-1], name, look["color"])
    ends = ", ".join(f"{name} at {values[-1]:.3f}" for name, values in losses.items())
    return picture(axes, f"Loss against the training step. After the last step: {ends}.")


def draw_batches(live: Sequence[tuple[int, float]], name: str, kind: str, recordings: Sequence[Recording]) -> Picture:
    """Draw the CNN's samples a second against the batch: this device solid, recordings of others dashed.

    Args:
        live: batch and samples a second, smallest batch first.
        name: this device's name.
        kind: this device's kind.
        recordings: of other devices; those without such a figure are left out.
    """
    axes = lecture_axes("Large batches fill a device", "images in the batch", "images a second")
    curves = [(f"{name}, now", kind, live, "-")]
    for recording in recordings:
        points = [(result.size, result.value) for result in recording.find("cnn", "fp32")]
        if points:
            curves.append((f"{recording.device}, {recording.label} {recording.date}", recording.kind, points, "--"))
    for label, of_kind, points, line in curves:
        look = {**LOOKS.get(of_kind, LOOKS["cuda"]), "linestyle": line}
        axes.plot(*zip(*points, strict=True), **look)
        label_end(axes, *points[-1], label, look["color"])
    axes.set(xscale="log", yscale="log")
    sizes = sorted({batch for _, _, points, _ in curves for batch, _ in points})
    axes.set_xticks(sizes, [f"{size:,}" for size in sizes], rotation=90 if len(sizes) > 6 else 0)
    rates = [rate for _, _, points, _ in curves for _, rate in points]
    ticks = [base * 10**power for power in range(2, 8) for base in (1, 2, 5)]
    ticks = [tick for tick in ticks if min(rates) / 2 <= tick <= max(rates) * 2]
    axes.set_yticks(ticks, [f"{tick:,}" for tick in ticks])
    axes.minorticks_off()
    ends = "; ".join(f"{label}: {points[-1][1]:,.0f} at {points[-1][0]:,}" for label, _, points, _ in curves)
    return picture(axes, f"Images a second against the images in a batch. {ends}.")
