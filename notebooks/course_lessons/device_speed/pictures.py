"""The pictures of lesson 6: published speeds, many timings of one call, and A B B A."""

import statistics
from collections.abc import Sequence

from matplotlib.ticker import LogLocator

from course_lessons.device_speed.published import resnet50_published
from course_tools.figures import AMBER, MUTED, SKY, Picture, label_ends, lecture_axes, picture
from course_utils.units import format_seconds

A, B = SKY, AMBER  # of Okabe and Ito's colours, two that mean no device


def draw_readings(first_s: float, readings_s: Sequence[float]) -> Picture:
    """Draw a dot for each timing of a call, and name the numbers that might sum them up."""
    apart = max(readings_s) / min(readings_s)
    axes = lecture_axes(
        f"The same step varies by a factor of {apart:.1f}",
        "timing",
        "milliseconds (logarithmic)",
    )
    right = len(readings_s) + 0.6
    axes.plot(range(1, len(readings_s) + 1), readings_s, "o", color=A, markersize=10)
    axes.plot([0], [first_s], "s", color=B, markersize=12)
    axes.set(xlim=(-0.6, right), yscale="log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(lambda seconds, _: f"{1e3 * seconds:g}")
    axes.yaxis.set_minor_formatter(lambda seconds, _: "")
    named = {
        "mean of all": (statistics.fmean([first_s, *readings_s]), "dotted"),
        "median of the dots": (statistics.median(readings_s), "solid"),
        "minimum": (min(readings_s), "dashed"),
    }
    said = [f"{name} {format_seconds(seconds)}" for name, (seconds, _) in named.items()]
    for seconds, style in named.values():
        axes.axhline(seconds, color=MUTED, linestyle=style, linewidth=2)
    heights = [seconds for seconds, _ in named.values()]
    ends = [(right, height, name, "black") for height, name in zip(heights, said, strict=True)]
    label_ends(axes, ends)
    words = f"first call {format_seconds(first_s)}"
    axes.text(0.8, first_s, words, va="center", bbox={"color": "white", "alpha": 0.8, "pad": 2})
    return picture(
        axes,
        f"{len(readings_s)} timings of one training step. The first call {format_seconds(first_s)},"
        f" {', '.join(said)}, the slowest {format_seconds(max(readings_s))}.",
    )


def draw_published() -> Picture:
    """Draw the published speeds of ResNet-50 over the batch, on CPU cores and on a T4."""
    found = resnet50_published()
    cpu, gpu = (found.of(label) for label in found.labels)
    apart = gpu[-1].rate / cpu[-1].rate
    return found.plot(title=f"Alike at batch 1, {apart:.0f} times apart at {gpu[-1].size}")


def draw_abba(drift: float = 0.06) -> Picture:
    """Draw two equal calls on a machine that becomes slower, timed in two orders (computed)."""
    axes = lecture_axes(
        "A B B A is fair on a slowing machine", "time, in undisturbed calls (computed)"
    )
    said = []
    for row, order in enumerate(("AAAABBBB", "ABBAABBA")):
        now, took = 0.0, {"A": 0.0, "B": 0.0}
        for name in order:
            seconds = 1 + drift * now
            color = A if name == "A" else B
            axes.barh(-row, seconds, 0.5, now, color=color, edgecolor="white")
            axes.text(now + seconds / 2, -row, name, ha="center", va="center")
            took[name] += seconds
            now += seconds
        ratio = took["A"] / took["B"]  # the way round of time_together's ratio("a", "b")
        axes.text(0.05, 0.4 - row, f"A / B = {ratio:.2f}", va="center")
        said.append(f"{ratio:.2f} in the order {' '.join(order)}")
    axes.set_yticks([0, -1], ["first all A,\nthen all B", "A B B A"])
    axes.set_ylim(-1.5, 0.7)
    return picture(
        axes,
        "Two equal calls on a machine that becomes slower: A takes "
        f"{' and '.join(said)} times as long as B.",
    )
