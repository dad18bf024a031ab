"""The pictures of lesson 5: the cache, the stages of a step, a systolic array."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from course_lessons.tpu.counting import StepTime
from course_tools.figures import BLUE, GREEN, MUTED, ORANGE, Picture, lecture_axes, picture
from course_utils.text import format_seconds

PALE = "#E5F2EE"


def draw_cache(sizes: Sequence[int], compiled: Sequence[int]) -> Picture:
    """Draw the rows of each call's input, and whether the call compiled a program.

    Args:
        sizes: the number of rows of each call's input.
        compiled: how many programs each call compiled; 0 means that the cache had one.
    """
    axes = lecture_axes("A known shape is found in the cache", "call", "rows of the input")
    for call, (size, programs) in enumerate(zip(sizes, compiled, strict=True), start=1):
        fill = GREEN if programs else "white"
        axes.scatter(call, size, s=900, marker="s", facecolor=fill, edgecolor=GREEN, linewidth=3)
    axes.set_xticks(range(1, len(sizes) + 1))
    axes.set_yticks(sorted(set(sizes)))
    axes.margins(0.12)
    axes.set_ylim(top=max(sizes) + 2.5)
    axes.text(1, max(sizes) + 1.5, "filled: compiled", color=GREEN)
    axes.text(4.5, max(sizes) + 1.5, "empty: found in the cache", color=MUTED)
    alt = f"{len(sizes)} calls with {len(set(sizes))} shapes compiled {sum(compiled)} programs."
    return picture(axes, alt, colors=8)


def draw_steps(times: Sequence[StepTime]) -> Picture:
    """Draw what each step was spent on: recording, compiling, running."""
    compiling = [str(n) for n, time in enumerate(times, start=1) if time.compile_s > 0]
    title = f"Steps that compile: {' and '.join(compiling) or 'none'}"
    axes = lecture_axes(title, "step", "seconds")
    numbers = np.arange(1, len(times) + 1)
    base = np.zeros(len(times))
    stages = (("trace_s", "trace", ORANGE), ("compile_s", "compile", GREEN), ("run_s", "run", BLUE))
    for field, name, colour in stages:
        heights = np.array([getattr(time, field) for time in times])
        hatch = "//" if name == "compile" else ""
        axes.bar(numbers, heights, bottom=base, color=colour, hatch=hatch, edgecolor="white")
        base += heights
    axes.set_xticks(numbers)
    last = times[-1]
    trace, run = format_seconds(last.trace_s), format_seconds(last.run_s)
    step = f"in step {len(times)}"
    labels = (
        (f"run: {run} {step}", BLUE),
        ("compile (hatched)", GREEN),
        (f"trace: {trace} {step}", ORANGE),
    )
    for height, (label, colour) in zip((0.85, 0.7, 0.55), labels, strict=True):
        axes.text(len(times) + 0.4, height * base.max(), label, color=colour, ha="right")
    return picture(axes, f"{title}; step {len(times)}: trace {trace}, run {run}.", colors=24)


def draw_systolic_array(side: int = 4) -> Picture:
    """Draw a grid of multiply-and-add cells through which the numbers of a product flow."""
    axes = lecture_axes("A matrix unit reads each number once")
    for row in range(side):
        for column in range(side):
            corner = (2 * column, 2 * (side - 1 - row))
            axes.add_patch(
                Rectangle(corner, 1.3, 1.3, facecolor=PALE, edgecolor=GREEN, linewidth=3)
            )
            weight = f"\u00d7 w$_{{{row + 1}{column + 1}}}$\n+"
            axes.text(corner[0] + 0.65, corner[1] + 0.65, weight, ha="center", va="center")
            _draw_arrow(axes, (corner[0] - 0.7, corner[1] + 0.65), (0.62, 0), BLUE)
            _draw_arrow(axes, (corner[0] + 0.65, corner[1]), (0, -0.62), ORANGE)
    right, top = 2 * side, 2 * side
    for row in range(side):
        height = 2 * (side - 1 - row) + 0.65
        axes.text(-0.9, height, f"x$_{{{row + 1}}}$", color=BLUE, ha="right", va="center")
    axes.text(right, top - 2, "inputs flow to the right,\neach is used in every column", color=BLUE)
    axes.text(right, top - 4.5, "sums flow down,\neach cell adds one product", color=ORANGE)
    size = f"weights stay.\nHere {side} x {side} cells;\na TPU has 128 x 128\nor 256 x 256"
    axes.text(right, top - 7, size, color=GREEN)
    axes.set(xlim=(-2, right + 6.5), ylim=(-1, top - 0.3))
    axes.axis("off")
    alt = "A grid of cells that hold weights: inputs flow to the right, and sums of products down."
    return picture(axes, alt, colors=32)


def _draw_arrow(
    axes: Axes, start: tuple[float, float], way: tuple[float, float], colour: str
) -> None:
    end = (start[0] + way[0], start[1] + way[1])
    style = {"arrowstyle": "-|>", "color": colour, "linewidth": 3, "mutation_scale": 24}
    axes.annotate("", xy=end, xytext=start, arrowprops=style)
