"""The one place where this package takes from the course's display modules: cards, tables and pictures."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from course_utils.display.cards import html_card, text_table

if TYPE_CHECKING:
    from course_utils.display.figures import Picture
else:
    Picture = Any  # figures need matplotlib, which is imported when a picture is drawn

__all__ = ["Picture", "chart", "html_card", "text_table"]


def chart(names: Sequence[str], spans: Sequence[tuple[float, float, float]], measured: Sequence[bool]) -> "Picture":
    """Draw hours on a logarithmic axis, one line for each device: low, estimate, high."""
    from course_utils.display.figures import LOOKS, lecture_axes, picture

    axes = lecture_axes("Hours until it is done", "hours (logarithmic)")
    for place, ((low, middle, high), seen) in enumerate(zip(spans, measured, strict=True)):
        look = LOOKS["cpu" if seen else "cuda"]
        axes.plot([low, high], [place, place], color=look["color"], linewidth=6, alpha=0.4, solid_capstyle="round")
        axes.plot([middle], [place], color=look["color"], marker=look["marker"], markersize=14)
    axes.set_xscale("log")
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    said = "; ".join(f"{name} {low:.3g} to {high:.3g}" for name, (low, _, high) in zip(names, spans, strict=True))
    return picture(axes, f"Hours on each device, with the interval in which the truth is expected: {said}.")


def memory_chart(moments: Sequence["Moment"], title: str) -> "Picture":
    """Draw what fills the memory over one step: one band for each kind, stacked, and the peak."""
    import numpy as np

    from course_utils.display.figures import lecture_axes, picture

    axes = lecture_axes(title, "operations of one step, in their order", "GB in use")
    amounts = np.array([[getattr(moment, kind) for moment in moments] for kind in KINDS]) / 1e9
    axes.stackplot(range(len(moments)), amounts, colors=BANDS, labels=KINDS, step="post")
    total = amounts.sum(axis=0)
    peak = int(total.argmax())
    axes.plot(peak, total[peak], "kv", markersize=16)
    for phase in ("backward", "optimizer"):
        start = next((n for n, moment in enumerate(moments) if moment.phase == phase), None)
        if start:
            axes.axvline(start, color="black", linestyle=":")
            axes.annotate(phase, (start, 1.0), xycoords=("data", "axes fraction"), xytext=(6, -22), textcoords="offset points")
    axes.legend(loc="upper left", reverse=True)
    said = ", ".join(f"{kind} {band[peak]:.3g} GB" for kind, band in zip(KINDS, amounts, strict=True))
    return picture(axes, f"What fills the memory over one step; at the peak {said}.")
