"""The pictures of lesson 5: rates against sizes, what limits a device, and a class's results."""

import math
import statistics
from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullLocator, PercentFormatter

from course_utils.compare.results import Comparison
from course_utils.compare.roofline import Place, Roof
from course_utils.display.figures import LOOKS, MUTED, Picture, lecture_axes, picture
from course_utils.timing import format_seconds

COLORS = 24  # a lesson holds five of these pictures
ONE_THREAD = {**LOOKS["cpu"], "marker": "v", "linestyle": ":", "markerfacecolor": "white"}
OTHER = {**LOOKS["cuda"], "color": "#CC79A7", "marker": "D"}


def human(number: float, unit: str = "") -> str:
    """Write a number as a person says it: 1 to 999 with a prefix."""
    for prefix, size in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3), ("", 1), ("m", 1e-3), ("µ", 1e-6)):
        if number >= size * 0.9999:
            return f"{number / size:.3g}{' ' if unit else ''}{prefix}{unit}"
    return f"{number:.3g}{' ' if unit else ''}{unit}"


def look_of(kind: str, label: str = "") -> dict:
    """Return the colour, marker and line style of a kind of device."""
    if kind == "cpu" and label.endswith(" 1 thread"):
        return {**ONE_THREAD, "markersize": 10}
    return {**LOOKS.get("xla" if kind == "tpu" else kind, OTHER), "markersize": 10}


def plot_rates(comparison: Comparison, recordings: Sequence[Comparison] = ()) -> Picture:
    """Draw each contestant's rate against the size, and mark where the lead changes hands.

    Args:
        comparison: with at least one row.
        recordings: of the same workload and precision on other machines, drawn dashed under their own labels; others
            are left out.

    Raises:
        ValueError: nothing has been measured yet.
    """
    if not comparison.rows:
        raise ValueError("a picture of a comparison was requested, but nothing has been measured yet.")
    name = f"{comparison.workload} ({comparison.precision})"
    axes = lecture_axes(name[:45], comparison.size_name, f"{comparison.unit} a second")
    ends = [_draw_rates(axes, comparison, label) for label in comparison.labels]
    fitting = [r for r in recordings if (r.workload, r.precision) == (comparison.workload, comparison.precision)]
    for recording in fitting:
        ends += [_draw_rates(axes, recording, label, recorded=True) for label in recording.labels]
    _log_axes(axes, sorted({size for one in (comparison, *fitting) for size in one.sizes}))
    _label_ends(axes, ends)
    doubts = sum(bool(row.warnings) for row in comparison.rows)
    if doubts:
        where = {"xycoords": "axes fraction", "va": "top", "color": MUTED, "fontsize": 20}
        axes.annotate(f"{doubts} of {len(comparison.rows)} points not to be trusted", (0.01, 1.0), **where)
    said = [f"{name}: {comparison.unit} a second against {comparison.size_name}."]
    said += [_in_words(comparison, label) for label in comparison.labels]
    said += [f"Recorded elsewhere: {_in_words(r, label)}" for r in fitting for label in r.labels]
    if len(comparison.labels) > 1:
        said.append(_mark_crossover(axes, comparison))
    return picture(axes, " ".join(said), colors=COLORS)


def _draw_rates(axes: Axes, comparison: Comparison, label: str, recorded: bool = False):
    rows = comparison.rows_of(label)
    look = dict(look_of(rows[0].kind, label))
    if recorded:
        look.update(linestyle=(0, (4, 4)), markerfacecolor="white", linewidth=2)
    sizes, rates = [row.size for row in rows], [row.rate for row in rows]
    axes.plot(sizes, rates, **look)
    low, high = zip(*(row.rate_quartiles for row in rows), strict=True)
    axes.fill_between(sizes, low, high, color=look["color"], alpha=0.2, linewidth=0)
    return sizes[-1], rates[-1], _short(label), look["color"]


def _short(label: str, most: int = 28) -> str:
    # A dollar sign would start a formula, and a name from a file may hold anything.
    plain = "".join(c if c.isprintable() else "?" for c in label).replace("$", r"\$")
    return plain if len(plain) <= most else plain[: most - 1] + "…"


def _label_ends(axes: Axes, ends: list[tuple]) -> None:
    """Write every line's name at its end, moved apart where lines end close together."""
    axes.figure.canvas.draw()
    to_pixels = axes.transData.transform
    placed: list[float] = []
    for x, y, text, color in sorted(ends, key=lambda end: to_pixels((end[0], end[1]))[1]):
        pixel = to_pixels((x, y))[1]
        free = max([pixel, *(other + 34 for other in placed)])
        placed.append(free)
        axes.annotate(
            text,
            (x, y),
            xytext=(14, (free - pixel) * 72 / axes.figure.dpi),
            textcoords="offset points",
            color=color,
            fontsize=20,
            va="center",
            annotation_clip=False,
        )


def _log_axes(axes: Axes, sizes: list[int]) -> None:
    axes.set(xscale="log", yscale="log")
    step = -(-len(sizes) // 8)
    axes.xaxis.set_major_locator(FixedLocator(sizes[::-1][::step]))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:,.0f}" if x < 1e5 else human(x)))
    axes.yaxis.set_major_locator(LogLocator(subs=(1,) if _decades(axes) > 2 else (1, 2, 5)))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: human(y)))
    axes.grid(axis="y", color="#D9D9D9", linewidth=1)


def _decades(axes: Axes) -> float:
    low, high = axes.get_ylim()
    return math.log10(high / max(low, 1e-300))


def _mark_crossover(axes: Axes, comparison: Comparison) -> str:
    crossover = comparison.crossover()
    if crossover.size is not None and crossover.size > min(crossover.sizes):
        axes.axvline(crossover.size, color=MUTED, linewidth=2, linestyle=":")
        left = crossover.size <= comparison.sizes[(len(comparison.sizes) - 1) // 2]
        axes.annotate(
            f"{_short(crossover.winner)} wins from {crossover.size:,}",
            (crossover.size, 0.03),
            xycoords=("data", "axes fraction"),
            xytext=(10 if left else -10, 0),
            textcoords="offset points",
            ha="left" if left else "right",
            color=MUTED,
            fontsize=20,
        )
    return f"{crossover}."


def _in_words(comparison: Comparison, label: str) -> str:
    rows = comparison.rows_of(label)
    first, last = rows[0], rows[-1]
    return f"{label}: {human(first.rate)} at {first.size:,}, {human(last.rate)} at {last.size:,}."


def plot_class(comparisons: Sequence[Comparison]) -> Picture:
    """Draw what everyone in a class measured, with the class's median for each kind of device.

    Args:
        comparisons: of one workload in one precision, at least one.

    Raises:
        ValueError: there is none.
    """
    if not comparisons:
        raise ValueError("a picture of a class was requested without any comparison.")
    first = comparisons[0]
    axes = lecture_axes(f"{first.workload}: the class"[:45], first.size_name, f"{first.unit} a second")
    rates: dict[tuple[str, str], dict[int, list[float]]] = {}
    for comparison in comparisons:
        for label in comparison.labels:
            rows = comparison.rows_of(label)
            look = look_of(rows[0].kind, label)
            thin = {"color": look["color"], "linestyle": look["linestyle"], "alpha": 0.25}
            axes.plot([r.size for r in rows], [r.rate for r in rows], **thin)
            for row in rows:
                rates.setdefault((row.kind, look["linestyle"]), {}).setdefault(row.size, []).append(row.rate)
    _log_axes(axes, sorted({size for comparison in comparisons for size in comparison.sizes}))
    said, ends = [f"{first.workload} ({first.precision}) by {len(comparisons)} students."], []
    for (kind, line), by_size in rates.items():
        name = f"{kind}, 1 thread" if line == ONE_THREAD["linestyle"] else kind
        sizes = sorted(by_size)
        middle = [statistics.median(by_size[size]) for size in sizes]
        look = look_of(kind, name)
        axes.plot(sizes, middle, **look)
        ends.append((sizes[-1], middle[-1], f"{name} ({len(by_size[sizes[-1]])})", look["color"]))
        said.append(f"Median of {name}: {human(middle[0])} at {sizes[0]:,}, {human(middle[-1])} at {sizes[-1]:,}.")
    _label_ends(axes, ends)
    return picture(axes, " ".join(said), colors=COLORS)


def plot_shares(parts: Mapping[str, Sequence[float]], title: str, kind: str) -> Picture:
    """Draw how the time of an epoch divides into its parts, a bar for each.

    Args:
        parts: seconds of each step, for each part by name.
        title: of the picture.
        kind: of the device.

    Raises:
        ValueError: nothing was measured.
    """
    totals = {name: sum(seconds) for name, seconds in parts.items()}
    if not sum(totals.values()) > 0:
        raise ValueError("a picture of shares was requested, but no time was measured.")
    axes = lecture_axes(title, "", "share of the time")
    shares = {name: total / sum(totals.values()) for name, total in totals.items()}
    bars = axes.bar(list(shares), list(shares.values()), color=look_of(kind)["color"], width=0.6)
    for bar, (name, share) in zip(bars, shares.items(), strict=True):
        middle = bar.get_x() + bar.get_width() / 2
        _note(axes, middle, share, f"{share:.1%} ({format_seconds(totals[name])})", ha="center")
    axes.set_ylim(0, 1.1)
    axes.yaxis.set_major_formatter(PercentFormatter(1))
    words = [f"{name} {share:.1%}, {format_seconds(totals[name])}" for name, share in shares.items()]
    return picture(axes, f"{title}: {'; '.join(words)}.", colors=COLORS)


def plot_roofline(roof: Roof, places: Sequence[Place]) -> Picture:
    """Draw what limits a device, and where pieces of work stand below it.

    Args:
        roof: what the device reached in its best cases.
        places: pieces of work, at least one.

    Raises:
        ValueError: there is no work to show.
    """
    if not places:
        raise ValueError("a roofline was requested without any work on it. Pass what `place` returned.")
    look = look_of(roof.kind)
    axes = lecture_axes("What limits this device?", "FLOP for each byte moved", "FLOP a second")
    left = min(roof.ridge, *(place.intensity for place in places)) / 4
    right = max(roof.ridge, *(place.intensity for place in places)) * 4
    axes.plot(
        [left, roof.ridge, right], [left * roof.bytes_per_s, roof.flop_per_s, roof.flop_per_s], **{**look, "marker": ""}
    )
    for place in places:
        axes.plot(place.intensity, place.flop_per_s, **{**look, "markersize": 14})
        _note(axes, place.intensity, place.flop_per_s, place.name, dy=-30, ha="center")
    if roof.data_sheet_flop_per_s:
        said = roof.data_sheet_flop_per_s
        axes.axhline(said, color=MUTED, linestyle="--", linewidth=2)
        _note(axes, right, said, f"data sheet: {human(said, 'FLOP/s')}", color=MUTED)
    _note(axes, right, roof.flop_per_s, f"measured peak: {human(roof.flop_per_s, 'FLOP/s')}", color=look["color"])
    middle = (left * roof.ridge) ** 0.5
    memory = f"memory: {human(roof.bytes_per_s, 'B/s')} "
    _note(axes, middle, middle * roof.bytes_per_s, memory, color=look["color"])
    axes.set(xscale="log", yscale="log")
    axes.set_ylim(min(left * roof.bytes_per_s, *(p.flop_per_s for p in places)) / 3, axes.get_ylim()[1] * 3)
    axes.minorticks_off()
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: human(value)))
    said = [f"Roofline of {roof.device}: {human(roof.flop_per_s, 'FLOP/s')} and {human(roof.bytes_per_s, 'B/s')}."]
    said += [f"{p.name}: {human(p.flop_per_s, 'FLOP/s')} at {p.intensity:.3g} FLOP a byte." for p in places]
    return picture(axes, " ".join(said), colors=COLORS)


def _note(axes: Axes, x: float, y: float, text: str, *, dy: float = 8, ha: str = "right", color: str = "black") -> None:
    where = {"xytext": (0, dy), "textcoords": "offset points", "ha": ha}
    axes.annotate(_short(text, 40), (x, y), color=color, fontsize=20, **where)
