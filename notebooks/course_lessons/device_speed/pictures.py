"""The pictures of lesson 5: many timings of one call, where clocks stop, and A B B A."""

import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from matplotlib.ticker import LogLocator

from course_utils.devices import Device, wait_for
from course_utils.figures import MUTED, Picture, lecture_axes, picture
from course_utils.text import format_seconds

A, B = "#56B4E9", "#E69F00"  # of Okabe and Ito's colours, two that mean no device


def draw_readings(first_s: float, readings_s: Sequence[float]) -> Picture:
    """Draw a dot for each timing of a call, and name the numbers that might sum them up."""
    apart = max(readings_s) / min(readings_s)
    axes = lecture_axes(
        f"One step, {len(readings_s)} timings, {apart:.1f} times apart", "timing", "milliseconds"
    )
    numbers = range(1, len(readings_s) + 1)
    axes.plot(numbers, [1e3 * seconds for seconds in readings_s], "o", color=A, markersize=10)
    axes.plot([0], [1e3 * first_s], "s", color=B, markersize=12)
    axes.annotate(
        f"the first call: {format_seconds(first_s)}",
        (0, 1e3 * first_s),
        (16, 0),
        textcoords="offset points",
        va="center",
        bbox={"color": "white", "alpha": 0.8, "pad": 2},  # where dots lie below it
    )
    mean_s = statistics.fmean([first_s, *readings_s])
    named = {
        "mean of all": (mean_s, "dotted"),
        "median without the first": (statistics.median(readings_s), "solid"),
        "minimum": (min(readings_s), "dashed"),
    }
    right = len(readings_s) + 0.6
    for name, (seconds, style) in named.items():
        axes.axhline(1e3 * seconds, color=MUTED, linestyle=style, linewidth=2)
        axes.text(right, 1e3 * seconds, f" {name}", color="black", va="center")
    axes.set(xlim=(-0.6, right), yscale="log")
    _spread_labels(axes)
    axes.set_ylabel("milliseconds (logarithmic)")
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.yaxis.set_minor_formatter(lambda value, _: "")
    words = [f"{name} {format_seconds(seconds)}" for name, (seconds, _) in named.items()]
    slowest = format_seconds(max(readings_s))
    return picture(
        axes,
        f"{len(readings_s)} timings of one training step. The first call "
        f"{format_seconds(first_s)}, {', '.join(words)}, the slowest {slowest}.",
    )


def _spread_labels(axes: Any) -> None:
    """Move the labels at the right edge apart where they would lie on one another."""
    axes.figure.canvas.draw()
    labels = [text for text in axes.texts if text.get_text().startswith(" ")]
    free = -1e9
    for label in sorted(labels, key=lambda text: text.get_position()[1]):
        x, y = axes.transData.transform(label.get_position())
        free = max(y, free + 30)
        label.set_position(axes.transData.inverted().transform((x, free)))


def time_waits(
    waits: Mapping[str, Callable[[], object]], device: Device | torch.device, side: int = 1500
) -> dict[str, float]:
    """Return the seconds that a clock sees of a product on a device, for each way to wait for it:
    the median of some readings, without the first ones.
    """
    import time

    where = device.torch_device if isinstance(device, Device) else device
    matrix = torch.rand(side, side).to(where)
    seen = {}
    for name, wait in waits.items():
        readings = []
        for _ in range(7):
            wait_for(device)  # so that each reading finds an idle device
            start = time.perf_counter()
            result = matrix @ matrix
            wait()
            readings.append(time.perf_counter() - start)
            wait_for(device)
            del result
        seen[name] = statistics.median(readings[2:])  # the first ones compile
    return seen


def draw_clocks(seen: Mapping[str, float]) -> Picture:
    """Draw how much of a product each clock has seen when it stops; the last one waits for it."""
    whole_s = list(seen.values())[-1]
    early = [name for name, seconds in seen.items() if seconds < 0.5 * whole_s]
    title = f"{len(early)} of {len(seen)} clocks stop too early"
    axes = lecture_axes(title, "milliseconds since the product was called")
    for row, (name, seconds) in enumerate(seen.items()):
        color = B if name in early else A
        axes.barh(-row, 1e3 * seconds, 0.6, color=color)
        axes.text(1e3 * seconds, -row, f" {format_seconds(seconds)}", va="center")
    axes.set_yticks([-row for row in range(len(seen))], list(seen), parse_math=False)
    axes.set_xlim(0, 1.25e3 * whole_s)
    words = [f"{name} after {format_seconds(seconds)}" for name, seconds in seen.items()]
    return picture(axes, f"Where a clock stops that times one product: {', '.join(words)}.")


def draw_abba(rounds: int = 2, drift: float = 0.06) -> Picture:
    """Draw two equal calls on a machine that becomes slower, timed in two orders (computed)."""
    orders = {"A A B B": "AABB", "A B B A": "ABBA"}
    found = {}
    axes = lecture_axes("A slowing machine: only A B B A is fair", "time, in undisturbed calls")
    for row, (name, order) in enumerate(orders.items()):
        now, took = 0.0, {"A": 0.0, "B": 0.0}
        for who in order * rounds if name == "A B B A" else _grouped(order, rounds):
            seconds = 1 + drift * now
            axes.barh(-row, seconds, 0.5, now, color={"A": A, "B": B}[who], edgecolor="white")
            axes.text(now + seconds / 2, -row, who, ha="center", va="center", color="black")
            took[who] += seconds
            now += seconds
        found[name] = took["B"] / took["A"]
        axes.text(0, 0.4 - row, f"B / A = {found[name]:.2f}", va="center")
    axes.set_yticks([0, -1], ["first all A,\nthen all B", "A B B A"])
    axes.set_ylim(-1.5, 0.7)
    said = " and ".join(f"{ratio:.2f} in the order {name}" for name, ratio in found.items())
    return picture(
        axes,
        f"Two equal calls on a machine that becomes slower: B takes {said} times as long as A.",
    )


def _grouped(order: str, rounds: int) -> str:
    return "".join(sorted(order * rounds))
