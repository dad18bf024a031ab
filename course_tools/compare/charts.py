"""The picture of a comparison: rates against sizes."""

from collections.abc import Sequence
from typing import Any

from course_tools.compare.measurement import Measurement
from course_tools.figures import (
    LOOKS,
    PINK,
    Picture,
    label_ends,
    label_text,
    lecture_axes,
    note_doubts,
    picture,
)
from course_utils.missing_packages import explain_missing_package
from course_utils.units import format_count

with explain_missing_package():
    from matplotlib.axes import Axes
    from matplotlib.ticker import FuncFormatter, LogLocator

ONE_THREAD = {**LOOKS["cpu"], "marker": "v", "linestyle": ":"}
OTHER = {**LOOKS["cuda"], "color": PINK, "marker": "D"}
DASHED = {"linestyle": (0, (4, 4)), "markerfacecolor": "white", "linewidth": 2}
THIN = {"marker": "", "alpha": 0.25}
CROSSED: dict[str, Any] = {
    "marker": "x",
    "markersize": 18,
    "markeredgewidth": 3,
    "linestyle": "",
    "color": "black",
}
Curve = Sequence[Measurement]  # of one contestant, smallest size first


def look_of(kind: str, threads: int | None = None) -> dict[str, Any]:
    """Return the colour, marker and line style of a kind of device."""
    if (kind, threads) == ("cpu", 1):
        return {**ONE_THREAD, "markersize": 10}
    return {**LOOKS.get(kind, OTHER), "markersize": 10}


def plot_rates(
    lines: Sequence[Curve],
    title: str,
    *,
    dashed: Sequence[Curve] = (),
    thin: Sequence[Curve] = (),
) -> Picture:
    """Draw the rates of one workload against its sizes, both logarithmic.

    Args:
        lines: of the contestants, with their names and the middle half of their rounds.
        title: what the picture shows, in at most 45 characters.
        dashed: lines from other machines, with their names.
        thin: lines without names, behind the others.
    """
    work = lines[0][0]
    axes = lecture_axes(
        label_text(title, 45),
        f"{label_text(work.size_name, 22)} (logarithmic)",
        f"{label_text(work.unit, 22)} per second (log.)",
    )
    for line in thin:
        _draw(axes, line, THIN)
    for line in lines:
        _draw(axes, line, {})
        low, high = zip(*(one.rate_quartiles for one in line), strict=True)
        color = look_of(line[0].kind)["color"]
        axes.fill_between([one.size for one in line], low, high, color=color, alpha=0.2, lw=0)
        doubtful = [one for one in line if one.warnings]
        axes.plot([one.size for one in doubtful], [one.rate for one in doubtful], **CROSSED)
    for line in dashed:
        _draw(axes, line, DASHED)
    sizes: set[int] = set()
    for line in (*lines, *dashed, *thin):
        sizes.update(one.size for one in line)
    log_axes(axes, sorted(sizes))
    named = [*lines, *dashed]
    label_ends(axes, [_end(line) for line in named])
    note_doubts(axes, [one for line in lines for one in line])
    words = f"{title}: {work.workload} ({work.precision}), {work.unit} per second against"
    said = " ".join(_in_words(line) for line in named)
    return picture(axes, f"{words} {work.size_name}, logarithmic. {said}", colors=24)


def _draw(axes: Axes, line: Curve, changes: dict[str, Any]) -> None:
    look = look_of(line[0].kind, line[0].threads) | changes
    axes.plot([one.size for one in line], [one.rate for one in line], **look)


def _end(line: Curve) -> tuple[float, float, str, str]:
    return line[-1].size, line[-1].rate, line[0].label, look_of(line[0].kind)["color"]


def _in_words(line: Curve) -> str:
    first, last = line[0], line[-1]
    rates = f"{format_count(first.rate)} at {first.size:,}, {format_count(last.rate)}"
    return f"{first.label}: {rates} at {last.size:,}."


def log_axes(axes: Axes, sizes: Sequence[int]) -> None:
    """Make both axes logarithmic, with these sizes as ticks and readable numbers as rates."""
    axes.set(xscale="log", yscale="log")
    apart, ticks = (sizes[-1] / sizes[0]) ** 0.12, list[int]()
    for size in reversed(sizes):  # at most nine, of which no two touch
        if not ticks or ticks[-1] > size * apart:
            ticks.append(size)
    axes.set_xticks(ticks, [f"{x:,}" if x < 1e5 else format_count(x) for x in ticks])
    low, high = axes.get_ylim()
    digits = (1,) if high > 100 * low else (1, 2, 5) if high > 10 * low else (1, 2, 3, 4, 6)
    axes.yaxis.set_major_locator(LogLocator(subs=digits))
    axes.yaxis.set_major_formatter(
        FuncFormatter(lambda y, _: format_count(y) if y >= 1 else f"{y:g}")
    )
    axes.minorticks_off()
    axes.grid(axis="y", color="#D9D9D9", linewidth=1)
