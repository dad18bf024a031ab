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
