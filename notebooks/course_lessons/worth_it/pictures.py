"""The pictures of lesson 7: what was measured here, what others published, what is estimated.

A measured or published figure is a dot, an estimate a line. Axes over several powers of ten are
logarithmic and say so.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator

from course_utils.compare.comparison import Roof
from course_utils.estimate.chips import Chip
from course_utils.estimate.parallel import Scaling
from course_utils.estimate.result import Estimate
from course_utils.estimate.row import Row
from course_utils.estimate.work import Work
from course_utils.figures import LOOKS, MUTED, Picture, label_end, lecture_axes, picture
from course_utils.text import format_count, format_seconds

CPU, GPU = LOOKS["cpu"]["color"], LOOKS["cuda"]["color"]
LINES = ("-", "--", "-.", ":")


def draw_three_limits(seconds: Mapping[int, float]) -> Picture:
    """Draw the measured seconds of an addition against how many numbers it adds, smallest first."""
    axes = lecture_axes(
        "Small additions all take the same time",
        "numbers added (logarithmic)",
        "time (logarithmic)",
    )
    axes.loglog(list(seconds), list(seconds.values()), **LOOKS["cpu"])
    first, last = next(iter(seconds.values())), list(seconds)[-1]
    axes.axhline(first, color=MUTED, linestyle=":")
    axes.annotate(
        "launch overhead", (last, first), (0, 8), "data", "offset points", color=MUTED, ha="right"
    )
    _ticks(axes, format_seconds, axis="y")
    _ticks(axes, count_text, axis="x")
    said = "; ".join(
        f"{count_text(numbers)}: {format_seconds(time)}" for numbers, time in seconds.items()
    )
    return picture(axes, f"The time of an addition by how many numbers it adds. {said}.", colors=7)


def draw_roofs(here: Roof, chips: Sequence[Chip], work: Work | None = None) -> Picture:
    """Draw this machine's measured roof, those of chips by data sheet, and a model's operations.

    Args:
        here: this machine's roof, in fp32.
        chips: in their own 16 bits.
        work: its convolutions, products and attention are dots on the first chip's roof, larger
            where they have more operations.
    """
    title = _under_the_roof(work, chips[0]) if work else "Every device is a slope and a roof"
    axes = lecture_axes(title, "FLOP for each byte (log.)", "FLOP/s (log.)")
    mine = "this CPU, measured"
    if here.warnings:
        mine = f"this CPU, unreliable: {here.warnings[0]}"
    roofs = [(chip.name, chip.peak("amp"), chip.bandwidth_gb_per_s * 1e9, GPU) for chip in chips]
    roofs.append((mine.partition(":")[0], here.flop_per_s, here.bytes_per_s, CPU))
    for (name, peak, bandwidth, colour), style in zip(roofs, ("--", "-.", ":", "-"), strict=False):
        _roofline(axes, name, peak, bandwidth, colour, style)
    if work:
        _operations(axes, work, chips[0])
    axes.set(xscale="log", yscale="log")
    _ticks(axes, format_count, axis="y")
    _ticks(axes, lambda value: f"{value:g}", axis="x")
    said = f"{mine}: {format_count(here.flop_per_s, 'FLOP')}/s, {here.bytes_per_s / 1e9:,.0f} GB/s"
    for name, peak, bandwidth, _ in roofs[:-1]:
        said += f"; {name}: {format_count(peak, 'FLOP')}/s and {bandwidth / 1e9:,.0f} GB/s"
    return picture(axes, f"Rooflines, logarithmic. {said}.", colors=8)


def _roofline(axes: Axes, name: str, peak: float, bandwidth: float, color: str, style: str) -> None:
    intensities = sorted([*(2.0**power for power in range(-4, 13)), peak / bandwidth])
    points = {one: min(peak, bandwidth * one) for one in intensities}
    _line(axes, points, name, color, style)


def _under_the_roof(work: Work, chip: Chip) -> str:
    bend = chip.peak("amp") / (chip.bandwidth_gb_per_s * 1e9)
    under = sum(op.flops for op in work.ops if op.bytes_moved and op.flops / op.bytes_moved > bend)
    return f"{under / work.flops:.0%} of the arithmetic is under the roof"


def _operations(axes: Axes, work: Work, chip: Chip) -> None:
    """Draw a model's operations where the data sheet of a chip puts them."""
    peak, bandwidth = chip.peak("amp"), chip.bandwidth_gb_per_s * 1e9
    for op in work.ops:
        if op.flops and op.bytes_moved:
            intensity = op.flops / op.bytes_moved
            size = 4 + 200 * op.flops / work.flops
            speed = min(peak, bandwidth * intensity)
            axes.plot([intensity], [speed], "o", color="black", markersize=min(size, 30), alpha=0.4)


def draw_held_out(pairs: Sequence[tuple[float, float]], device: str, share: float = 0.9) -> Picture:
    """Draw estimated against published times of many networks, and the band that holds a share of
    them.

    The pairs are published and estimated milliseconds, one for each network.
    """
    axes = lecture_axes(
        f"{len(pairs):,} networks on the {device}",
        "published, ms a sample (logarithmic)",
        "estimated, ms (log.)",
    )
    factor = error_factor(pairs, share)
    low, high = min(one for one, _ in pairs), max(one for one, _ in pairs)
    axes.fill_between(
        [low, high],
        [low / factor, high / factor],
        [low * factor, high * factor],
        color="#CCCCCC",
        lw=0,
    )
    axes.loglog(*zip(*pairs, strict=True), ".", color=GPU, markersize=6)
    axes.loglog([low, high], [low, high], color="black", linestyle="-")
    axes.annotate(
        f"{share:.0%} within a\nfactor of {factor:.2f}", (0.05, 0.8), xycoords="axes fraction"
    )
    _ticks(axes, lambda value: f"{value:g}")
    said = f"{len(pairs)} networks: estimated against published times"
    return picture(axes, f"{said}, {share:.0%} within a factor of {factor:.2f}.", colors=5)


def error_factor(pairs: Sequence[tuple[float, float]], share: float) -> float:
    """Return the factor, up or down, that holds `share` (0 to 1) of the estimates; each pair is
    (truth, estimate).
    """
    errors = sorted(abs(math.log(estimate / truth)) for truth, estimate in pairs)
    return math.exp(errors[min(len(errors) - 1, math.ceil(share * len(errors)) - 1)])


def draw_crossover(
    here_s: Mapping[int, float], there_s: Mapping[str, Mapping[int, float]], *, factor: float
) -> Picture:
    """Draw samples a second from the seconds of a step by batch: measured here, and estimated by
    the name of a chip.

    An estimate may be off by `factor`, up or down: that is the band around its line, and the range
    in the title.
    """
    name, there = next(iter(there_s.items()))
    title = _crossing(name, [(batch, here_s[batch] / there[batch]) for batch in here_s], factor)
    axes = lecture_axes(title[:45], "samples in the batch (logarithmic)", "samples/s (log.)")
    _line(axes, _rates(here_s), "this CPU,\nmeasured", CPU, "-", marker=LOOKS["cpu"]["marker"])
    for number, (name, steps_s) in enumerate(there_s.items()):
        shift = (0.75, 1.5)[number % 2]
        rates = _rates(steps_s)
        _line(axes, rates, f"{name}, est.", GPU, LINES[1 + number % 3], shift)
        low, high = ([power * rate for rate in rates.values()] for power in (1 / factor, factor))
        axes.fill_between([*rates], low, high, color=GPU, alpha=0.15, linewidth=0)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.margins(y=0.12)  # the highest label stands above the end of its line
    _ticks(axes, count_text)
    said = f"this CPU, measured: {_ends(_rates(here_s))}"
    said += "".join(
        f"; {name}, estimated: {_ends(_rates(steps_s))}" for name, steps_s in there_s.items()
    )
    return picture(axes, f"{title}. Samples a second against the batch; {said}.", colors=24)


def _crossing(name: str, ratios: Sequence[tuple[int, float]], factor: float) -> str:
    """Say between which batches a chip overtakes this CPU for good, if its estimate may be off by a
    factor.

    Args:
        ratios: (batch, time here over there), smallest batch first.
    """
    perhaps, surely = (_stays_above(level, ratios) for level in (1 / factor, factor))
    if perhaps is None:
        return f"{name}: slower throughout"
    if surely is None:
        return (
            f"{name}: perhaps faster from batch {perhaps:,.0f} on"
            if perhaps
            else f"{name}: too close to call"
        )
    if perhaps:
        return f"{name} overtakes at batch {perhaps:,.0f} to {surely:,.0f}"
    return f"{name}: faster from batch {surely:,.0f} on" if surely else f"{name}: faster throughout"


def _stays_above(level: float, ratios: Sequence[tuple[int, float]]) -> float | None:
    """Return from which batch on the ratios stay above a level: 0 for all, None for none, else to
    one digit.
    """
    below = [place for place, (_, ratio) in enumerate(ratios) if ratio <= level]
    if not below:
        return 0.0
    if below[-1] == len(ratios) - 1:
        return None
    (low, before), (high, after) = ratios[below[-1]], ratios[below[-1] + 1]
    batch = low * (high / low) ** (math.log(level / before) / math.log(after / before))
    return float(f"{batch:.1g}")


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
        in_time = deadline is not None and best.hours_interval[1] <= deadline
        title = f"Cheapest{' that is surely in time' * in_time}: {best.name}"
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
    _ticks(axes, lambda value: f"{value:g}")
    said = "; ".join(f"{row.name} {', '.join(row.cells()[1:4])}" for row in rows)
    return picture(axes, f"{title}. Money against hours, and whether it fits. {said}.", colors=16)


def _money(axes: Axes, row: Row) -> None:
    """Draw one device: a bar over its hours, a bar over its money, and a marker where they meet."""
    look = LOOKS["cpu" if row.kind == "measured" else "cuda"]
    fits = row.fits is not False
    color = look["color"] if fits else MUTED
    band: dict[str, Any] = {"color": color, "alpha": 0.35, "linewidth": 6}
    cost = max(row.cost or 0.0, 0.01)
    low, high = row.cost_interval or (cost, cost)
    axes.plot(row.hours_interval, [cost, cost], **band)
    axes.plot([row.hours, row.hours], [max(low, 0.01), max(high, 0.01)], **band)
    marker = look["marker"] if fits else "x"
    axes.plot([row.hours], [cost], color=color, marker=marker, markersize=12)
    name = row.name if fits else f"{row.name}: does not fit"
    axes.annotate(
        name,
        (row.hours, cost),
        (12, 10),
        textcoords="offset points",
        color=color,
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 1, "alpha": 0.8},
    )


def draw_scaling(estimated: Scaling, published: Mapping[int, Sequence[float]]) -> Picture:
    """Draw what share of a perfect speed-up many devices reach: estimated as a line, published as
    dots.

    The published speed-ups are those that others measured, by the number of devices.
    """
    shares = {
        count: speedup / count
        for count, speedup in zip(estimated.counts, estimated.speedups, strict=True)
    }
    checked = [count for count in shares if count <= estimated.checked_to]
    count = max(checked, default=estimated.counts[-1])
    title = f"{count:,} devices: {shares[count]:.0%} of perfect (estimated)"
    axes = lecture_axes(title[:45], "devices (logarithmic)", "share of perfect")
    _line(axes, dict.fromkeys(shares, 1.0), "perfect", MUTED, ":")
    axes.plot(checked, [shares[count] for count in checked], color=GPU)
    unchecked = {
        count: share for count, share in shares.items() if count >= max(checked, default=0)
    }
    _line(axes, unchecked, "extrapolated", GPU, "--")
    for count, speedups in published.items():
        axes.plot(
            [count] * len(speedups), [speedup / count for speedup in speedups], "o", color="black"
        )
    axes.set(xscale="log", ylim=(0, 1.1))
    _ticks(axes, count_text, axis="x")
    _ticks(axes, "{:.0%}".format, axis="y")
    said = "Share of perfect speed-up by number of devices, "
    said += f"for {estimated.device} over {estimated.link}. Estimated: "
    said += ", ".join(
        f"{shares[each]:.0%} on {each:,}"
        for each in sorted({min(shares), *checked[-1:], max(shares)})
    )
    for count, speedups in published.items():
        said += (
            f". Published on {count:,}: {min(speedups) / count:.0%} to {max(speedups) / count:.0%}"
        )
    return picture(axes, f"{said}.", colors=8)


def _line(
    axes: Axes,
    points: Mapping[Any, float],
    name: str,
    color: str,
    style: str,
    shift: float = 1.0,
    marker: str = "",
) -> None:
    """Draw a line and its name at its end; `shift` moves the name up or down by a factor, away from
    a neighbour's.
    """
    axes.plot(list(points), list(points.values()), color=color, linestyle=style, marker=marker)
    last = list(points)[-1]
    label_end(axes, last, shift * points[last], name, color)


def _rates(steps_s: Mapping[int, float]) -> dict[float, float]:
    return {batch: batch / seconds for batch, seconds in steps_s.items()}


def _ends(points: Mapping[Any, float]) -> str:
    """Say in words where a line begins and where it ends."""
    first, *_, last = points if len(points) > 1 else [*points] * 2
    return ", ".join(f"{format_count(points[place])} at {place:,}" for place in (first, last))


def count_text(number: float) -> str:
    """Return a count as a tick says it."""
    return (
        f"{number / 1e6:g} M"
        if number >= 1e6
        else f"{number:,.0f}"
        if number >= 1
        else f"{number:g}"
    )


def _ticks(axes: Axes, text, axis: str = "both") -> None:
    for name, one in (("x", axes.xaxis), ("y", axes.yaxis)):
        if axis in (name, "both"):
            one.set_major_formatter(FuncFormatter(lambda value, _: text(value)))
            one.set_minor_formatter(FuncFormatter(lambda value, _: ""))
