"""The picture of a comparison: rates against sizes."""

import math
from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator

from course_utils.compare.measurement import Crossover, Measurement
from course_utils.figures import LOOKS, MUTED, Picture, lecture_axes, picture
from course_utils.text import clean, format_count

ONE_THREAD = {**LOOKS["cpu"], "marker": "v", "linestyle": ":", "markerfacecolor": "white"}
OTHER = {**LOOKS["cuda"], "color": "#CC79A7", "marker": "D"}
Line = Sequence[Measurement]  # of one contestant, smallest size first


def look_of(kind: str, threads: int | None = None) -> dict[str, Any]:
    """Return the colour, marker and line style of a kind of device."""
    if (kind, threads) == ("cpu", 1):
        return {**ONE_THREAD, "markersize": 10}
    return {**LOOKS.get("xla" if kind == "tpu" else kind, OTHER), "markersize": 10}


def plot_rates(
    lines: Sequence[Line],
    recorded: Sequence[Line] = (),
    crossover: Crossover | None = None,
    crowd: Sequence[Line] = (),
    title: str = "",
) -> Picture:
    """Draw the rates of one workload against its sizes, and mark where the lead changes hands.

    What was `recorded` on other machines is dashed; a `crowd` is thin, without names, and behind
    the others. Without a `title`, the picture says who wins, or else the name of the work.
    """
    work = lines[0][0]
    name = title or (_verdict(crossover) if crossover else f"{work.workload} ({work.precision})")
    xlabel = f"{_short(work.size_name, 22)} (logarithmic)"
    axes = lecture_axes(_short(name, 45), xlabel, f"{_short(work.unit, 22)} a second (log.)")
    for line in crowd:
        thin = look_of(line[0].kind, line[0].threads) | {"marker": "", "alpha": 0.25}
        axes.plot([one.size for one in line], [one.rate for one in line], **thin)
    dashed = {"linestyle": (0, (4, 4)), "markerfacecolor": "white", "linewidth": 2}
    ends = [_draw_line(axes, line, {}) for line in lines]
    ends += [_draw_line(axes, line, dashed) for line in recorded]
    sizes: set[int] = set()
    for line in (*lines, *recorded, *crowd):
        sizes.update(one.size for one in line)
    log_axes(axes, sorted(sizes))
    label_ends(axes, ends)
    measured: list[Measurement] = []
    for line in lines:
        measured += line
    note_doubts(axes, measured)
    words = [f"{name}: {work.workload} ({work.precision}), {work.unit} a second against"]
    words += [f"{work.size_name}, logarithmic.", *map(_in_words, lines)]
    words += [f"Recorded elsewhere: {_in_words(line)}" for line in recorded]
    if crossover:
        words.append(f"{crossover}.")
        if crossover.size not in (None, crossover.sizes[0]):  # the title says of what
            axes.axvline(crossover.size, color=MUTED, linewidth=2, linestyle=":")
    return picture(axes, " ".join(words), colors=24)  # a lesson holds five of these


def note_doubts(axes: Axes, figures: Sequence[Any]) -> None:
    """Mark in a corner of a picture how many of its figures are unreliable, if there are any."""
    doubts = sum(bool(one.warnings) for one in figures)
    if doubts:
        words = f"{doubts} of {len(figures)} points unreliable"
        axes.annotate(words, (0.01, 1.0), xycoords="axes fraction", va="top", color=MUTED)


def _verdict(crossover: Crossover) -> str:
    if 2 * crossover.doubts > len(crossover.sizes) * (1 + len(crossover.beats)):
        return "Not sure: most points are unreliable"
    if crossover.size is None:
        return f"{crossover.winner} does not win at {crossover.sizes[-1]:,}"
    if crossover.size == crossover.sizes[0]:
        return f"{crossover.winner}: faster at every size"
    return f"{crossover.winner}: faster from {crossover.size:,} on"


def _draw_line(axes: Axes, line: Line, changes: dict) -> tuple[float, float, str, str]:
    look = {**look_of(line[0].kind, line[0].threads), **changes}
    sizes, rates = [one.size for one in line], [one.rate for one in line]
    axes.plot(sizes, rates, **look)
    low, high = zip(*(one.rate_quartiles for one in line), strict=True)
    axes.fill_between(sizes, low, high, color=look["color"], alpha=0.2, linewidth=0)
    return sizes[-1], rates[-1], line[0].label, look["color"]


def _in_words(line: Line) -> str:
    first, last = (f"{format_count(one.rate)} at {one.size:,}" for one in (line[0], line[-1]))
    return f"{line[0].label}: {first}, {last}."


def _short(label: str, most: int = 36) -> str:
    return clean(label, most).replace("$", r"\$")  # a dollar sign would start a formula


def label_ends(axes: Axes, ends: Sequence[tuple[float, float, str, str]]) -> None:
    """Write the names of lines at their ends (x, y, name, colour), moved apart where lines end
    close together.

    The axes need their final scales.
    """
    axes.figure.canvas.draw()
    height = {end: axes.transData.transform(end[:2])[1] for end in ends}
    free = -math.inf
    for end in sorted(ends, key=lambda end: height[end]):
        free = max(height[end], free + 34)
        at, (text, color) = end[:2], end[2:]
        by = (14, (free - height[end]) * 72 / axes.figure.dpi)
        axes.annotate(
            _short(text),
            at,
            by,
            textcoords="offset points",
            color=color,
            va="center",
            annotation_clip=False,
        )


def log_axes(axes: Axes, sizes: Sequence[int]) -> None:
    """Make both axes logarithmic, with these sizes as ticks and rates as a person says them."""
    axes.set(xscale="log", yscale="log")
    apart, ticks = (sizes[-1] / sizes[0]) ** 0.12, list[int]()
    for size in reversed(sizes):  # at most nine, of which no two touch
        if not ticks or ticks[-1] > size * apart:
            ticks.append(size)
    axes.set_xticks(ticks, [f"{x:,}" if x < 1e5 else format_count(x) for x in ticks])
    low, high = axes.get_ylim()
    axes.yaxis.set_major_locator(LogLocator(subs=(1,) if high > 100 * low else (1, 2, 5)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: format_count(y)))
    axes.minorticks_off()
    axes.grid(axis="y", color="#D9D9D9", linewidth=1)
