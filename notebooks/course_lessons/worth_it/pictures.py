"""The pictures of lesson 6: what was measured here, what others published, and what is estimated,
told apart by shape.

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
from course_utils.estimate.speeds import Speed
from course_utils.figures import LOOKS, MUTED, Picture, label_end, lecture_axes, picture
from course_utils.text import format_count, format_seconds

CPU, GPU, TPU = (LOOKS[kind]["color"] for kind in ("cpu", "cuda", "xla"))
LINES = ("-", "--", "-.", ":")


def draw_bars(rates: Mapping[str, float], unit: str) -> Picture:
    """Draw one bar for each device, from top to bottom in the order given, with its rate in `unit`
    beside it.
    """
    fastest = max(rates, key=lambda name: rates[name])
    title = f"Fastest: {fastest}, {rates[fastest] / min(rates.values()):,.0f} times the slowest"
    axes = lecture_axes(title[:45], unit)
    colours = [
        TPU if "TPU" in name else GPU if "RTX" in name or "GPU" in name else CPU for name in rates
    ]
    bars = axes.barh(list(rates), list(rates.values()), color=colours, height=0.6)
    axes.bar_label(bars, fmt="{:,.0f}", padding=8)
    axes.invert_yaxis()
    axes.margins(x=0.12)
    said = ", ".join(f"{name} {rate:,.0f}" for name, rate in rates.items())
    return picture(axes, f"Bars of {unit}: {said}.", colors=8)


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


def draw_roofs(here: Roof, chips: Sequence[Chip], precision: str = "amp") -> Picture:
    """Draw this machine's roof, measured in fp32, below those of `chips` in `precision`, from their
    data sheets.
    """
    axes = lecture_axes(
        "Every device is a slope and a roof", "FLOP for each byte (log.)", "FLOP/s (log.)"
    )
    points = [2.0**power for power in range(-4, 11)]
    roofs = [
        (chip.name, chip.peak(precision), chip.bandwidth_gb_per_s * 1e9, GPU) for chip in chips
    ]
    mine = "this CPU, not to be trusted" if here.warnings else "this CPU, measured"
    roofs = [*roofs, (mine, here.flop_per_s, here.bytes_per_s, CPU)]
    for (name, peak, bandwidth, colour), style in zip(
        roofs, (*LINES[1:], LINES[1], LINES[0]), strict=False
    ):
        # their roofs are close
        shift = 0.7 if name == "RTX 5090" else 1.4 if name.startswith("A100") else 1.0
        roofline = {
            point: min(peak, bandwidth * point) for point in sorted([*points, peak / bandwidth])
        }
        _line(axes, roofline, name, colour, style, shift)
    axes.set(xscale="log", yscale="log")
    _ticks(axes, format_count, axis="y")
    _ticks(axes, lambda value: f"{value:g}", axis="x")
    said = "; ".join(
        f"{name}: {format_count(peak, 'FLOP')}/s and {bytes_ / 1e9:,.0f} GB/s"
        for name, peak, bytes_, _ in roofs
    )
    return picture(axes, f"Rooflines, logarithmic. {said}.", colors=8)


def draw_sweep(published: Sequence[Speed], estimated_s: Mapping[int, float]) -> Picture:
    """Draw published speeds over the batch as dots, and estimated seconds of a step, by batch, as a
    line.

    The published ones are of one network on one device in one precision, smallest batch first.
    """
    one, two = published[:2]
    title = f"On a {one.device}, {two.batch} images take {two.step_s / one.step_s:.2f}x the time of {one.batch}"
    axes = lecture_axes(title[:45], "images in the batch (logarithmic)", "images/s (logarithmic)")
    axes.plot(
        [row.batch for row in published],
        [row.samples_per_s for row in published],
        "o",
        color="black",
    )
    label_end(axes, published[-1].batch, 0.85 * published[-1].samples_per_s, "published", "black")
    _line(axes, _rates(estimated_s), "estimated", GPU, "--", 1.08)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    _ticks(axes, count_text)
    said = f"published, dots: {_ends({row.batch: row.samples_per_s for row in published})}; estimated, a line: "
    said = (
        f"Images a second against the batch on a {one.device}; {said}{_ends(_rates(estimated_s))}."
    )
    return picture(axes, said, colors=7)


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
    said = f"{len(pairs)} networks: estimated against published times, {share:.0%} within a factor of {factor:.2f}."
    return picture(axes, said, colors=5)


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


def draw_money(found: Estimate, deadline_hours: float | None = None) -> Picture:
    """Draw what a job costs against how long it takes, one dot with its interval for each device
    that has a price.

    A deadline is drawn as a line.

    Raises:
        ValueError: no device has a price.
    """
    rows = [(row, row.cost) for row in found.rows if row.cost is not None]
    if not rows:
        raise ValueError("a picture of money needs a price. Pass prices={'T4': 0.35} to estimate.")
    best = found.cheapest(deadline_hours)
    when = " by the deadline" if deadline_hours else ""
    title = f"Cheapest{when}: {best.device}" if best else "None is surely in time"
    axes = lecture_axes(title[:45], "hours (logarithmic)", "money for the whole job")
    top = 1.25 * max(cost for _, cost in rows) or 1.0
    for row, cost in rows:
        (soon, late), near = (
            row.hours_interval,
            [one for one, other in rows if 0 < other - cost < 0.12 * top],
        )
        # no room above
        below = any(one.hours_interval[0] < late and soon < one.hours_interval[1] for one in near)
        look = LOOKS[
            "cpu" if row.kind == "measured" else "xla" if row.device.startswith("TPU") else "cuda"
        ]
        axes.plot(row.hours_interval, [cost, cost], color=look["color"], alpha=0.4, linewidth=6)
        axes.plot([row.hours], [cost], color=look["color"], marker=look["marker"], markersize=14)
        where: dict[str, Any] = {
            "xytext": (0, -34 if below else 14),
            "textcoords": "offset points",
            "ha": "center",
        }
        # over the line of the deadline
        where["bbox"] = {"facecolor": "white", "edgecolor": "none", "pad": 1}
        axes.annotate(row.device, (row.hours, cost), **where)
    axes.set_xscale("log")
    if deadline_hours:
        axes.axvline(deadline_hours, color="black", linestyle=":")
        axes.annotate(
            "deadline", (deadline_hours, 0.0), (8, 8), ("data", "axes fraction"), "offset points"
        )
    axes.set_ylim(0, top)
    _ticks(axes, lambda value: f"{value:g}", axis="x")
    said = "; ".join(f"{row.device}: {row.hours:.2g} hours, {cost:.2f}" for row, cost in rows)
    return picture(axes, f"{title}. Money against hours. {said}.", colors=16)


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
    said = f"Share of perfect speed-up by number of devices, for {estimated.device} over {estimated.link}. Estimated: "
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
