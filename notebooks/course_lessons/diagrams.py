"""Boxes with words in them, and arrows between them."""

from typing import Any

from matplotlib.axes import Axes
from matplotlib.patches import FancyBboxPatch

from course_tools.figures import lecture_axes

DARK = "#111111"


def draw_canvas(title: str) -> Axes:
    """Return empty axes, 12.8 wide and 9 high."""
    axes = lecture_axes(title)
    axes.set(xlim=(0, 12.8), ylim=(0, 9))
    axes.axis("off")
    return axes


def draw_box(
    axes: Axes, x: float, y: float, width: float, text: str, color: str, *, height: float = 2
) -> None:
    """Draw a box, with its lower left corner at (x, y), and words in its middle."""
    style = "round,pad=0,rounding_size=0.15"
    look: dict[str, Any] = {"facecolor": "white", "edgecolor": color, "linewidth": 5}
    axes.add_patch(FancyBboxPatch((x, y), width, height, style, **look))
    axes.text(x + width / 2, y + height / 2, text, ha="center", va="center", color=DARK)


def draw_arrow(axes: Axes, start: tuple[float, float], end: tuple[float, float]) -> None:
    """Draw an arrow from one point to another."""
    style = {"arrowstyle": "-|>", "color": "black", "linewidth": 3, "mutation_scale": 25}
    axes.annotate("", end, start, arrowprops=style)
