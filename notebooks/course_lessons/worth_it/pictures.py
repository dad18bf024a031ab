"""The pictures of lesson 8: what was measured here, what others published, what is estimated.

A measured or published figure is a dot, an estimate a line. Axes over several powers of ten are
logarithmic and say so.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.ticker import FuncFormatter, LogLocator

from course_tools.estimate.words import number as digits_of
from course_tools.figures import (
    LOOKS,
    MUTED,
    Picture,
    label_ends,
    label_text,
    lecture_axes,
    picture,
)
from course_utils.units import format_count, format_seconds

CPU, GPU = LOOKS["cpu"]["color"], LOOKS["cuda"]["color"]
LINES = ("-", "--", "-.", ":")
LONGEST_TITLE = 45  # characters


def draw_three_limits(seconds: Mapping[int, float]) -> Picture:
    """Draw the measured seconds of an addition against how many numbers it adds, smallest first."""
    title = "On the left, overhead sets the time"
    axes = lecture_axes(title, "numbers added (logarithmic)", "time (logarithmic)")
    axes.loglog(list(seconds), list(seconds.values()), **LOOKS["cpu"])
    shortest, most = min(seconds.values()), max(seconds)
    axes.axhline(shortest, color=MUTED, linestyle=":")
    place = (most, shortest)
    axes.annotate(
        "overhead of a call", place, (0, 8), "data", "offset points", color=MUTED, ha="right"
    )
    _ticks(axes.xaxis, format_count)
    _ticks(axes.yaxis, format_seconds)
    said = "; ".join(f"{n:,}: {format_seconds(time)}" for n, time in seconds.items())
    return picture(axes, f"The time of an addition by how many numbers it adds. {said}.", colors=7)


def draw_held_out(
    pairs: Sequence[tuple[float, float]], device: str, *, uncounted: int, share: float = 0.9
) -> Picture:
    """Draw estimated against published times, and the band that holds a share of them.

    Args:
        pairs: published and estimated milliseconds a sample, one for each measurement.
        device: on which it was measured.
        uncounted: how many more were published, of networks that were not counted.
        share: of the estimates that the band holds.
    """
    factor, worst = factor_around(pairs, share), factor_around(pairs, 1)
    title = f"{share:.0%} of {len(pairs):,} estimates: within {factor:.2f} times"
    published_label = f"published for the {label_text(device, 20)}, ms per sample (logarithmic)"
    axes = lecture_axes(title, published_label, "estimated, ms (log.)")
    published = [one for one, _ in pairs]
    ends = [min(published), max(published)]
    low, high = [one / factor for one in ends], [one * factor for one in ends]
    axes.fill_between(ends, low, high, color="#CCCCCC", linewidth=0)
    axes.loglog(*zip(*pairs, strict=True), ".", color=GPU, markersize=6)
    axes.loglog(ends, ends, color="black", linestyle="-")
    notes = [f"grey: {share:.0%} of them", f"the worst: {worst:.1f} times"]
    notes.append(f"not counted: {uncounted:,} more")
    axes.annotate("\n".join(notes), (0.03, 0.97), xycoords="axes fraction", va="top")
    _ticks(axes.xaxis, "{:g}".format)
    _ticks(axes.yaxis, "{:g}".format)
    alt = f"{title}. Estimated against published times on the {device}; {'; '.join(notes[1:])}."
    return picture(axes, alt, colors=16)


def factor_around(pairs: Sequence[tuple[float, float]], share: float) -> float:
    """Return the factor, up or down, that holds `share` (0 to 1) of the estimates.

    Each pair is (truth, estimate).
    """
    errors = sorted(abs(math.log(estimate / truth)) for truth, estimate in pairs)
    return math.exp(errors[max(0, math.ceil(share * len(errors)) - 1)])


def draw_crossover(
    here_s: Mapping[int, float],
    there_s: Mapping[str, Mapping[int, float]],
    *,
    factors: tuple[float, float],
) -> Picture:
    """Draw over the batch how many times as fast as this CPU chips are estimated to be.

    Args:
        here_s: seconds of a step by batch, measured, smallest batch first.
        there_s: the same for chips by name, estimated; the title is about the first, and where
            its band holds 1 the picture has a dotted line at each end.
        factors: the time may be shorter by the first and longer by the second, which is the band
            around a line.
    """
    gains = {
        name: {batch: here_s[batch] / seconds for batch, seconds in steps_s.items()}
        for name, steps_s in there_s.items()
    }
    first, gain = next(iter(gains.items()))
    perhaps, surely = (_stays_above(level, gain) for level in (1 / factors[0], factors[1]))
    title = title_of(first, after=f" {_crossing(perhaps, surely, min(gain))}")
    axes = lecture_axes(title, "samples in the batch (logarithmic)", "times as fast (log.)")
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.plot([*here_s], [1.0] * len(here_s), color=CPU, marker=LOOKS["cpu"]["marker"])
    ends = [(max(here_s), 1.0, _this_cpu(), CPU)]
    said = []
    for number, (name, ratios) in enumerate(gains.items()):
        axes.plot([*ratios], [*ratios.values()], color=GPU, linestyle=LINES[1 + number % 3])
        ends.append((*list(ratios.items())[-1], f"{name}, est.", GPU))
        low = [ratio / factors[1] for ratio in ratios.values()]
        high = [ratio * factors[0] for ratio in ratios.values()]
        axes.fill_between([*ratios], low, high, color=GPU, alpha=0.15, linewidth=0)
        said.append(
            f"{name}: {digits_of(ratios[min(ratios)])} to {digits_of(ratios[max(ratios)])} times"
        )
    if perhaps and surely != min(gain):
        _mark_unsure(axes, first, (perhaps, surely or max(gain)), here_s)
    axes.set_xticks(list(here_s))
    _ticks(axes.xaxis, "{:,.0f}".format)
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 3)))
    _ticks(axes.yaxis, "{:g}".format)
    label_ends(axes, ends)
    alt = f"{title}. Estimated speed over that measured on this CPU, from the smallest batch to "
    return picture(axes, f"{alt}the largest. {'; '.join(said)}.", colors=24)


def _mark_unsure(
    axes: Axes, chip: str, unsure: tuple[float, float], here_s: Mapping[int, float]
) -> None:
    """Mark the batches between which a chip is perhaps faster, and perhaps not."""
    for batch in unsure:
        axes.axvline(batch, color=MUTED, linestyle=":")
    words = f"{label_text(chip, 20)}:\ntoo close to call"
    above: Any = {"transform": axes.get_xaxis_transform(), "va": "top"}
    if unsure[0] / min(here_s) > math.sqrt(max(here_s) / min(here_s)):  # more room at the left
        axes.text(unsure[0], 0.98, f"{words} → ", ha="right", **above)
    else:
        axes.text(math.sqrt(math.prod(unsure)), 0.98, words, ha="center", **above)


def _this_cpu() -> str:
    threads = torch.get_num_threads()
    return f"CPU, {threads} thread{'s' * (threads != 1)}"


def _crossing(perhaps: float | None, surely: float | None, first: float) -> str:
    """Say between which batches a chip overtakes this CPU for good.

    Args:
        perhaps: from which batch on the fast end of its interval is ahead, if from any.
        surely: the same for the slow end.
        first: the smallest batch.
    """
    if perhaps is None:
        return "is slower at every batch"
    if surely is None:
        where = "at every batch" if perhaps == first else f"beyond batch {perhaps:,.0f}"
        return f"is perhaps faster {where}"
    if surely == first:
        return "is faster at every batch"
    if perhaps == first:
        return f"is surely faster beyond batch {surely:,.0f}"
    if perhaps == surely:
        return f"is faster beyond batch {surely:,.0f}"
    return f"overtakes at batch {perhaps:,.0f} to {surely:,.0f}"


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


def title_of(name: str, *, before: str = "", after: str = "") -> str:
    """Return a title with a device's name, which alone is shortened where there is no room."""
    room = LONGEST_TITLE - len(before) - len(after) - name.count("$")
    return f"{before}{label_text(name, room)}{after}"


def _ticks(axis: Axis, text: Callable[[float], str]) -> None:
    axis.set_major_formatter(FuncFormatter(lambda value, _: text(value)))
    axis.set_minor_formatter(FuncFormatter(lambda value, _: ""))
