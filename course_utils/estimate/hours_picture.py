"""A picture of the hours on each device, with their intervals."""

from collections.abc import Sequence
from typing import Any

from course_utils.estimate.row import Row, span
from course_utils.figures import LOOKS, Picture, lecture_axes, picture


def draw_hours(rows: Sequence[Row]) -> Picture:
    """Draw the hours of each row; a device on which the step does not fit is crossed out."""
    axes = lecture_axes("Hours until it is done", "hours (logarithmic)")
    for place, row in enumerate(rows):
        look = LOOKS["cpu" if row.kind == "measured" else "cuda"]
        color = look["color"] if row.fits is not False else "0.6"
        band: dict[str, Any] = {"linewidth": 6, "alpha": 0.4, "solid_capstyle": "round"}
        axes.plot(row.hours_interval, [place, place], color=color, **band)
        marker = look["marker"] if row.fits is not False else "x"
        axes.plot([row.hours], [place], color=color, marker=marker, markersize=14)
    axes.set_xscale("log")
    names = [row.name if row.fits is not False else f"{row.name}: does not fit" for row in rows]
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    times = [f"{name} {span(row.hours_interval)}" for name, row in zip(names, rows, strict=True)]
    return picture(axes, f"Time on each device, with its interval: {'; '.join(times)}.")
