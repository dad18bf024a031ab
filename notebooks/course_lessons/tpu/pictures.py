"""The pictures of lesson 4: a graph and its cuts, the cache of programs, a sharded tensor, and when
compiling pays.
"""

import math
from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.patches import Rectangle

from course_utils.figures import LOOKS, MUTED, Picture, label_end, lecture_axes, picture

TPU, DARK = LOOKS["xla"]["color"], LOOKS["cpu"]["color"]
# of Okabe and Ito
SHADES = ("#009E73", "#56B4E9", "#E69F00", "#F0E442", "#CC79A7", "#D55E00", DARK, "#BBBBBB")


def draw_graph(recorded: Sequence[int], cut_every: int) -> Picture:
    """Draw how many operations were in the graph after each line of Python, cut by `sync` every so
    many lines.
    """
    axes = lecture_axes(
        "The graph grows until sync() cuts it", "lines of Python", "operations in the graph"
    )
    lines = range(1, len(recorded) + 1)
    axes.bar(lines, recorded, color=TPU)
    for cut in range(cut_every, len(recorded) + 1, cut_every):
        axes.axvline(cut + 0.5, color=MUTED, linestyle="--")
        axes.text(
            cut + 0.42,
            max(recorded) * 1.06,
            "sync()",
            color=MUTED,
            ha="right",
            rotation=90,
            va="bottom",
        )
    axes.set(xticks=list(lines), ylim=(0, 1.35 * max(recorded)))
    return picture(
        axes, f"Operations in the graph after each line: {', '.join(map(str, recorded))}.", colors=8
    )


def draw_cache(sizes: Sequence[int], compiled: Sequence[int]) -> Picture:
    """Draw the rows of each call's input, and whether the call compiled programs, or none as the
    cache had one.
    """
    axes = lecture_axes("A known shape is found in the cache", "call", "rows of the input")
    calls, rows, found = np.arange(1, len(sizes) + 1), np.array(sizes), np.array(compiled) == 0
    for where, colour, name in ((~found, TPU, "compiled"), (found, "white", "from the cache")):
        at = calls[where], rows[where]
        axes.scatter(
            *at, s=900, marker="s", facecolors=colour, edgecolors=TPU, linewidths=3, label=name
        )
    axes.set(xticks=calls, yticks=sorted(set(sizes)))
    axes.margins(0.12)
    axes.legend(
        loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=2, frameon=False, markerscale=0.6
    )
    return picture(
        axes,
        f"{len(sizes)} calls with {len(set(sizes))} shapes: {sum(compiled)} programs.",
        colors=8,
    )


def draw_shards(meshes: Mapping[str, Sequence[Sequence[int]]], shape: tuple[int, int]) -> Picture:
    """Draw which part of a matrix of this shape each device holds.

    A mesh has a name, and for each device the first row, the end of the rows, the first column, the
    end of the columns.
    """
    rows, columns = shape
    axes = lecture_axes(f"One {rows} x {columns} tensor on eight devices")
    for place, (name, parts) in enumerate(meshes.items()):
        left = place * 1.6 * columns
        for device, (top, bottom, begin, end) in enumerate(parts):
            at, size = (left + begin, rows - bottom), (end - begin, bottom - top)
            axes.add_patch(
                Rectangle(at, *size, facecolor=SHADES[device], edgecolor="white", linewidth=3)
            )
            middle, ink = (
                (at[0] + size[0] / 2, at[1] + size[1] / 2),
                "white" if SHADES[device] == DARK else "black",
            )
            axes.text(*middle, f"device {device}", ha="center", va="center", color=ink)
        axes.text(left + columns / 2, rows * 1.03, name, ha="center", fontsize=22)
    axes.set(xlim=(-0.1, (1.6 * len(meshes) - 0.6) * columns + 0.1), ylim=(-0.1, 1.12 * rows))
    axes.axis("off")
    held = (
        f"{name}: {parts[0][1] - parts[0][0]} x {parts[0][3] - parts[0][2]} each"
        for name, parts in meshes.items()
    )
    return picture(
        axes,
        f"Parts of a {rows} x {columns} tensor on {len(parts)} devices. {'; '.join(held)}.",
        colors=24,
    )


def draw_payoff(cpu_s: float, xla_s: float, compile_s: float, where: str) -> Picture:
    """Draw the total time against the calls on the CPU and on XLA (`where`), whose first call takes
    compile_s more.
    """
    pays_after = calls_until_xla_pays(cpu_s, xla_s, compile_s)
    calls = np.array([0, max(12, 4 * (pays_after or 25))])  # both lines are straight
    axes = lecture_axes(f"When does compiling pay? ({where})", "calls", "seconds in all")
    for kind, total, name in (
        ("cpu", cpu_s * calls, "CPU"),
        ("xla", compile_s + xla_s * calls, f"XLA, {where}"),
    ):
        axes.plot(
            calls,
            total,
            color=LOOKS[kind]["color"],
            linestyle=LOOKS[kind]["linestyle"],
            linewidth=3,
        )
        label_end(axes, calls[-1], total[-1], name, LOOKS[kind]["color"])
    said = "The two lines do not meet."
    if pays_after:
        said = f"XLA has cost less from call {pays_after} on."
        axes.axvline(pays_after, color=MUTED, linewidth=2)
        axes.text(
            pays_after,
            cpu_s * calls[-1],
            f" pays from call {pays_after}",
            color=MUTED,
            fontsize=20,
            va="top",
        )
    axes.set(xlim=(0, None), ylim=(0, None))
    return picture(
        axes,
        f"Total time against calls: the CPU starts at once, XLA ({where}) compiles first. {said}",
    )


def calls_until_xla_pays(cpu_s: float, xla_s: float, compile_s: float) -> int | None:
    """Return the first number of calls at which XLA, compilation included, has cost no more; None
    if there is none.
    """
    return None if xla_s >= cpu_s else max(1, math.ceil(compile_s / (cpu_s - xla_s)))
