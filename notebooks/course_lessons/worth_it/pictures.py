"""The pictures of lesson 7: what was measured here, what others published, what is estimated.

A measured or published figure is a dot, an estimate a line. Axes over several powers of ten are
logarithmic and say so.
"""

import math
from collections.abc import Callable, Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.ticker import FuncFormatter, LogLocator

from course_utils.compare.comparison import Roof
from course_utils.estimate.chips import Chip
from course_utils.estimate.result import Estimate
from course_utils.estimate.row import Row
from course_utils.estimate.work import Work
from course_utils.figures import LOOKS, MUTED, Picture, label_end, label_ends, lecture_axes, picture
from course_utils.text import format_count, format_seconds

CPU, GPU = LOOKS["cpu"]["color"], LOOKS["cuda"]["color"]
LINES = ("-", "--", "-.", ":")


def draw_three_limits(seconds: Mapping[int, float]) -> Picture:
    """Draw the measured seconds of an addition against how many numbers it adds, smallest first."""
    title = "Small additions all take the same time"
    axes = lecture_axes(title, "numbers added (logarithmic)", "time (logarithmic)")
    axes.loglog(list(seconds), list(seconds.values()), **LOOKS["cpu"])
    shortest, most = min(seconds.values()), max(seconds)
    axes.axhline(shortest, color=MUTED, linestyle=":")
    place = (most, shortest)
    axes.annotate(
        "launch overhead", place, (0, 8), "data", "offset points", color=MUTED, ha="right"
    )
    _ticks(axes.xaxis, format_count)
    _ticks(axes.yaxis, format_seconds)
    said = "; ".join(f"{n:,}: {format_seconds(time)}" for n, time in seconds.items())
    return picture(axes, f"The time of an addition by how many numbers it adds. {said}.", colors=7)


def draw_roofs(here: Roof, chips: Sequence[Chip], work: Work) -> Picture:
    """Draw this machine's measured roof, those of chips by data sheet, and a model's operations.

    Args:
        here: this machine's roof, in fp32.
        chips: in their own 16 bits.
        work: its convolutions, products and attention are dots on the first chip's roof, larger
            where they have more operations.
    """
    peak, bandwidth = _sheet(chips[0])
    products = [op for op in work.ops if op.flops and op.bytes_moved]
    under = [op.flops for op in products if op.flops / op.bytes_moved > peak / bandwidth]
    title = f"{sum(under) / work.flops:.0%} of the arithmetic is under the roof"
    axes = lecture_axes(title, "FLOP for each byte (log.)", "FLOP/s (log.)")
    said = []
    for chip, style in zip(chips, LINES[1:], strict=False):
        _roofline(axes, chip.name, *_sheet(chip), GPU, style)
        said.append(f"{chip.name}: {_roof_text(*_sheet(chip))}")
    for op in products:  # where the data sheet puts them
        intensity = op.flops / op.bytes_moved
        size = min(30, 4 + 200 * op.flops / work.flops)
        speed = min(peak, bandwidth * intensity)
        axes.plot([intensity], [speed], "o", color="black", markersize=size, alpha=0.4)
    _roofline(axes, "this CPU", here.flop_per_s, here.bytes_per_s, CPU, "-")
    trust = f"unreliable: {here.warnings[0]}" if here.warnings else "measured"
    said.append(f"this CPU, {trust}: {_roof_text(here.flop_per_s, here.bytes_per_s)}")
    axes.set(xscale="log", yscale="log")
    _ticks(axes.xaxis, "{:g}".format)
    _ticks(axes.yaxis, format_count)
    return picture(axes, f"Rooflines, logarithmic. {'; '.join(said)}.", colors=8)


def _sheet(chip: Chip) -> tuple[float, float]:
    """Return the peak in FLOP/s and the bandwidth in bytes/s of a chip's data sheet."""
    return chip.peak("amp"), chip.bandwidth_gb_per_s * 1e9


def _roof_text(peak: float, bandwidth: float) -> str:
    return f"{format_count(peak, 'FLOP')}/s and {bandwidth / 1e9:,.0f} GB/s"


def _roofline(axes: Axes, name: str, peak: float, bandwidth: float, color: str, style: str) -> None:
    intensities = (2**-4, peak / bandwidth, 2**12)
    points = {intensity: min(peak, bandwidth * intensity) for intensity in intensities}
    axes.plot([*points], [*points.values()], color=color, linestyle=style)
    last = list(points.items())[-1]
    label_end(axes, *last, name, color)


def draw_held_out(pairs: Sequence[tuple[float, float]], device: str, share: float = 0.9) -> Picture:
    """Draw estimated against published times, and the band that holds a share of them.

    The pairs are published and estimated milliseconds a sample, one for each network.
    """
    title = f"{len(pairs):,} networks on the {device}"
    axes = lecture_axes(title, "published, ms a sample (logarithmic)", "estimated, ms (log.)")
    factor = error_factor(pairs, share)
    published = [one for one, _ in pairs]
    ends = [min(published), max(published)]
    low, high = [one / factor for one in ends], [one * factor for one in ends]
    axes.fill_between(ends, low, high, color="#CCCCCC", linewidth=0)
    axes.loglog(*zip(*pairs, strict=True), ".", color=GPU, markersize=6)
    axes.loglog(ends, ends, color="black", linestyle="-")
    band = f"{share:.0%} within a\nfactor of {factor:.2f}"
    axes.annotate(band, (0.05, 0.8), xycoords="axes fraction")
    _ticks(axes.xaxis, "{:g}".format)
    _ticks(axes.yaxis, "{:g}".format)
    said = f"{len(pairs)} networks: estimated against published times"
    return picture(axes, f"{said}, {share:.0%} within a factor of {factor:.2f}.", colors=5)


def error_factor(pairs: Sequence[tuple[float, float]], share: float) -> float:
    """Return the factor, up or down, that holds `share` (0 to 1) of the estimates.

    Each pair is (truth, estimate).
    """
    errors = sorted(abs(math.log(estimate / truth)) for truth, estimate in pairs)
    return math.exp(errors[max(0, math.ceil(share * len(errors)) - 1)])


def draw_crossover(
    here_s: Mapping[int, float], there_s: Mapping[str, Mapping[int, float]], *, factor: float
) -> Picture:
    """Draw samples a second over the batch: measured here, and estimated for chips.

    Args:
        here_s: seconds of a step by batch, measured, smallest batch first.
        there_s: the same for chips by name, estimated; the title is about the first.
        factor: an estimate may be off by it, up or down, which is the band around its line.
    """
    name, there = next(iter(there_s.items()))
    title = _crossing(name, {batch: here_s[batch] / there[batch] for batch in here_s}, factor)
    axes = lecture_axes(title[:45], "samples in the batch (logarithmic)", "samples/s (log.)")
    here = _rates(here_s)
    axes.plot([*here], [*here.values()], color=CPU, marker=LOOKS["cpu"]["marker"])
    ends = [(*list(here.items())[-1], "CPU, measured", CPU)]
    said = [f"this CPU, measured: {_ends(here)}"]
    for number, (name, steps_s) in enumerate(there_s.items()):
        rates = _rates(steps_s)
        axes.plot([*rates], [*rates.values()], color=GPU, linestyle=LINES[1 + number % 3])
        ends.append((*list(rates.items())[-1], f"{name}, est.", GPU))
        low = [rate / factor for rate in rates.values()]
        high = [rate * factor for rate in rates.values()]
        axes.fill_between([*rates], low, high, color=GPU, alpha=0.15, linewidth=0)
        said.append(f"{name}, estimated: {_ends(rates)}")
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    _ticks(axes.xaxis, "{:,.0f}".format)
    _ticks(axes.yaxis, format_count)
    label_ends(axes, ends)
    alt = f"{title}. Samples a second against the batch; {'; '.join(said)}."
    return picture(axes, alt, colors=24)


def _crossing(name: str, ratios: Mapping[int, float], factor: float) -> str:
    """Say between which batches a chip overtakes this CPU for good.

    Its estimate may be off by a factor. The ratios are the time here over that there, by batch.
    """
    perhaps = _stays_above(1 / factor, ratios)
    surely = _stays_above(factor, ratios)
    if perhaps is None:
        return f"{name}: slower throughout"
    if surely is None:
        return f"{name}: perhaps faster from batch {perhaps:,.0f} on"
    if perhaps == surely:
        return f"{name}: faster from batch {surely:,.0f} on"
    return f"{name} overtakes at batch {perhaps:,.0f} to {surely:,.0f}"


def _stays_above(level: float, ratios: Mapping[int, float]) -> float | None:
    """Return from which batch on the ratios stay above a level, to one digit, or None."""
    points = list(ratios.items())
    below = [place for place, (_, ratio) in enumerate(points) if ratio <= level]
    if not below:
        return points[0][0]
    if below[-1] == len(points) - 1:
        return None
    (low, before), (high, after) = points[below[-1] : below[-1] + 2]
    # on logarithmic axes the line between two points is straight
    share = math.log(level / before) / math.log(after / before)
    return float(f"{low * (high / low) ** share:.1g}")


def _rates(steps_s: Mapping[int, float]) -> dict[int, float]:
    return {batch: batch / seconds for batch, seconds in steps_s.items()}


def _ends(points: Mapping[int, float]) -> str:
    """Say in words where a line begins and where it ends."""
    first, last = min(points), max(points)
    return f"{format_count(points[first])} at {first:,}, {format_count(points[last])} at {last:,}"


def draw_money(found: Estimate) -> Picture:
    """Draw money against hours for each device that has a price, with intervals on both axes.

    A device on which the step does not fit is grey and crossed out; the deadline is a line.

    Raises:
        ValueError: no device has a price.
    """
    rows = [row for row in found.rows if row.cost is not None]
    if not rows:
        raise ValueError("a picture of money needs a price. Pass prices={'T4': 0.35} to estimate.")
    deadline = found.question.deadline_hours
    best = found.cheapest(deadline) or found.cheapest()
    title = "It fits none of them"
    if best:
        title = f"Cheapest: {best.name}"
        if deadline:
            surely = best.hours_interval[1] <= deadline
            when = "that is surely in time" if surely else "(may be late)"
            title = f"Cheapest {when}: {best.name}"
    axes = lecture_axes(title[:45], "hours (logarithmic)", "money for the job (logarithmic)")
    for row in rows:
        _money(axes, row)
    axes.set(xscale="log", yscale="log")
    axes.margins(0.15)
    if deadline:
        axes.axvline(deadline, color="black", linestyle=":")
        place = (deadline, 0.0)
        axes.annotate("deadline", place, (8, 8), ("data", "axes fraction"), "offset points")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        _ticks(axis, "{:g}".format)
    said = "; ".join(f"{row.name} {', '.join(row.cells()[1:4])}" for row in rows)
    return picture(axes, f"{title}. Money against hours, and whether it fits. {said}.", colors=16)


def _money(axes: Axes, row: Row) -> None:
    """Draw one device: a bar over its hours, a bar over its money, and a marker where they meet."""
    look = LOOKS["cpu" if row.kind == "measured" else "cuda"]
    color, marker, name = look["color"], look["marker"], row.name
    if row.fits is False:
        color, marker, name = MUTED, "x", f"{row.name}: does not fit"
    cost = max(row.cost or 0.0, 0.01)  # what is free has no place on a logarithmic axis
    low, high = row.cost_interval or (cost, cost)
    axes.plot(row.hours_interval, [cost, cost], color=color, alpha=0.35, linewidth=6)
    axes.plot(
        [row.hours, row.hours],
        [max(low, 0.01), max(high, 0.01)],
        color=color,
        alpha=0.35,
        linewidth=6,
    )
    axes.plot([row.hours], [cost], color=color, marker=marker, markersize=12)
    axes.annotate(
        name,
        (row.hours, cost),
        (12, 10),
        textcoords="offset points",
        color=color,
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 1, "alpha": 0.8},
    )


def _ticks(axis: Axis, text: Callable[[float], str]) -> None:
    axis.set_major_formatter(FuncFormatter(lambda value, _: text(value)))
    axis.set_minor_formatter(FuncFormatter(lambda value, _: ""))
