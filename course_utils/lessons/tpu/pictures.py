"""The pictures of lesson 4: a board and its cores, a tile that is mostly padding, and when compiling pays."""

import math

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from course_utils.display.figures import LOOKS, MUTED, Picture, label_end, lecture_axes, picture

TPU = LOOKS["xla"]["color"]


def draw_board() -> Picture:
    """Draw the board that "a TPU has eight cores" comes from, a v3-8, and the one chip that Colab lends today."""
    axes = lecture_axes("One board, four chips, eight cores")
    for chip in range(4):
        _draw_chip(axes, x=3.1 * (chip % 2), y=2.6 * (1 - chip // 2), cores=2, mxus=2, name=f"chip {chip}")
    _draw_chip(axes, x=7.4, y=1.3, cores=1, mxus=4, name="chip 0")
    for x, text in ((2.9, "v3-8: 4 chips x 2 cores"), (8.75, "v5e-1: 1 core")):
        axes.text(x, 5.1, text, ha="center", color=TPU, weight="bold", fontsize=22)
    axes.text(5.0, -0.7, "each filled box is one matrix unit (MXU)", ha="center", color=MUTED, fontsize=20)
    axes.set(xlim=(-0.1, 10.3), ylim=(-0.9, 5.5))
    axes.axis("off")
    return picture(
        axes,
        "A v3-8 board has four chips with two cores each, eight cores in all, and two matrix units in each core. "
        "A v5e-1 is one chip with one core and four matrix units.",
    )


def draw_padding(side: int = 128) -> Picture:
    """Draw which share of a matrix unit works for a number of rows: arithmetic, not a measurement."""
    rows = np.arange(1, 4 * side + 1)
    share = 100 * rows / (side * np.ceil(rows / side))
    low = 100 * (side + 1) / (2 * side)
    axes = lecture_axes(f"Row {side + 1} costs a whole new tile", "rows", "share of the MXU at work, %")
    axes.plot(rows, share, color=TPU, linewidth=3)
    axes.set(xticks=range(0, 4 * side + 1, side), ylim=(0, 105))
    note = f"{side + 1} rows: {low:.0f} %"
    axes.annotate(note, (side + 1, low), (side + 30, 25), fontsize=20, arrowprops={"arrowstyle": "->", "linewidth": 2})
    return picture(
        axes,
        f"A saw blade: the share of a {side} by {side} matrix unit at work reaches 100 % at each multiple of {side} "
        f"rows and drops right after it, to {low:.0f} % at {side + 1} rows.",
    )


def draw_payoff(cpu_s: float, xla_s: float, compile_s: float, where: str) -> Picture:
    """Draw the total time against the number of calls on the CPU and on XLA, whose first call compiles.

    Args:
        cpu_s: seconds of one call on the CPU.
        xla_s: seconds of one call on XLA once it is compiled.
        compile_s: seconds that the first call on XLA took beyond that.
        where: what XLA ran on, for the labels: "rehearsal" or "TPU".
    """
    pays_after = calls_until_xla_pays(cpu_s, xla_s, compile_s)
    calls = np.arange(0, max(12, 4 * (pays_after or 25)) + 1)
    axes = lecture_axes(f"When does compiling pay? ({where})", "calls", "seconds in all")
    for kind, total, name in (("cpu", cpu_s * calls, "CPU"), ("xla", compile_s + xla_s * calls, f"XLA, {where}")):
        axes.plot(calls, total, color=LOOKS[kind]["color"], linestyle=LOOKS[kind]["linestyle"], linewidth=3)
        label_end(axes, calls[-1], total[-1], name, LOOKS[kind]["color"])
    said = "The two lines do not meet."
    if pays_after:
        said = f"XLA has cost less from call {pays_after} on."
        axes.axvline(pays_after, color=MUTED, linewidth=2)
        top = cpu_s * calls[-1]
        axes.text(pays_after, top, f" pays from call {pays_after}", color=MUTED, fontsize=20, va="top")
    axes.set(xlim=(0, None), ylim=(0, None))
    return picture(axes, f"Total time against calls: the CPU starts at once, XLA ({where}) compiles first. {said}")


def calls_until_xla_pays(cpu_s: float, xla_s: float, compile_s: float) -> int | None:
    """Return the first number of calls at which XLA, compilation included, has cost no more; None if there is none."""
    return None if xla_s >= cpu_s else max(1, math.ceil(compile_s / (cpu_s - xla_s)))


def _draw_chip(axes: Axes, x: float, y: float, cores: int, mxus: int, name: str) -> None:
    axes.add_patch(Rectangle((x, y), 2.7, 2.3, facecolor="#E6F4EF", edgecolor=TPU, linewidth=2))
    axes.text(x + 0.1, y + 0.12, name, color=MUTED, fontsize=20)
    width = 2.5 / cores
    for core in range(cores):
        left = x + 0.1 + core * width
        axes.add_patch(Rectangle((left + 0.05, y + 0.6), width - 0.1, 1.6, facecolor="white", edgecolor=MUTED))
        axes.text(left + width / 2, y + 1.72, "core", ha="center", fontsize=20)
        step = (width - 0.3) / mxus
        for mxu in range(mxus):
            axes.add_patch(Rectangle((left + 0.15 + (mxu + 0.08) * step, y + 0.75), 0.84 * step, 0.75, facecolor=TPU))
