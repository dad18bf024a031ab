"""The pictures of lesson 5: the cache, the stages of a step, a systolic array."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from course_lessons.tpu.xla_activity import StepTime
from course_tools.figures import BLUE, GREEN, MUTED, ORANGE, Picture, lecture_axes, picture
from course_utils.units import format_seconds

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
    title = f"Only steps {' and '.join(compiling)} compile" if compiling else "No step compiles"
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
        (f"run ({run} {step})", BLUE),
        ("compile", GREEN),
        (f"trace ({trace} {step})", ORANGE),
    )
    beside = len(compiling) + 0.5  # the first steps compile
    for height, (label, colour) in zip((0.95, 0.5, 0.15), labels, strict=True):
        axes.text(beside, height * base.max(), label, color=colour)
    return picture(axes, f"{title}; step {len(times)}: trace {trace}, run {run}.", colors=48)


def draw_systolic_array(side: int = 3) -> Picture:
    """Draw three cycles in a grid of multiply-and-add cells, through which numbers flow."""
    axes = lecture_axes("The weights stay; inputs and sums move")
    for cycle in range(1, 4):
        left = (cycle - 1) * (2 * side + 1.6)
        axes.text(left + side - 0.35, 2 * side + 0.2, f"cycle {cycle}", ha="center")
        for row in range(side):
            for column in range(side):
                corner = (left + 2 * column, 2 * (side - 1 - row))
                _draw_cell(axes, corner, f"w$_{{{row + 1}{column + 1}}}$", row + column + 1, cycle)
    axes.text(0, -2.6, "blue: an input moves to the right, and is used in every column", color=BLUE)
    axes.text(0, -3.6, "orange: a sum moves down, and each cell adds one product", color=ORANGE)
    axes.set(xlim=(-0.9, 3 * (2 * side + 1.6)), ylim=(-4.2, 2 * side + 1.1))
    axes.axis("off")
    alt = f"A grid of {side} x {side} cells that hold weights, at three cycles: the cells that"
    words = f"{alt} work lie on a diagonal, which moves to the right and down."
    return picture(axes, words, colors=32)


def _draw_cell(
    axes: Axes, corner: tuple[float, float], weight: str, works_at: int, cycle: int
) -> None:
    """Draw one cell with its weight, full and with arrows into the next cells while it works."""
    works = works_at == cycle
    fill, text = (GREEN, "white") if works else (PALE, "black")
    axes.add_patch(Rectangle(corner, 1.3, 1.3, facecolor=fill, edgecolor=GREEN, linewidth=3))
    x, y = corner[0] + 0.65, corner[1] + 0.65
    axes.text(x, y, weight, ha="center", va="center", color=text)
    if works:
        _draw_arrow(axes, (x + 0.65, y), (0.7, 0), BLUE)
        _draw_arrow(axes, (x, y - 0.65), (0, -0.7), ORANGE)


def _draw_arrow(
    axes: Axes, start: tuple[float, float], way: tuple[float, float], colour: str
) -> None:
    end = (start[0] + way[0], start[1] + way[1])
    style = {"arrowstyle": "-|>", "color": colour, "linewidth": 3, "mutation_scale": 24}
    axes.annotate("", xy=end, xytext=start, arrowprops=style)
