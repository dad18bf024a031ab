"""The pictures of lesson 0."""

from collections.abc import Mapping

from course_utils.figures import BLUE, ORANGE, Picture, lecture_axes, picture
from course_utils.text import format_seconds


def draw_times(seconds: Mapping[str, float], title: str) -> Picture:
    """Draw one bar for each device, with its time beside it.

    Args:
        seconds: by the device's name, from top to bottom; a name that contains "CPU" is drawn as
            one.
        title: what the picture shows.
    """
    axes = lecture_axes(title, "minutes")
    colours = [BLUE if "CPU" in name else ORANGE for name in seconds]
    bars = axes.barh(
        list(seconds), [time / 60 for time in seconds.values()], color=colours, height=0.6
    )
    texts = [format_seconds(time) for time in seconds.values()]
    axes.bar_label(bars, texts, padding=10, fontsize=24)
    axes.invert_yaxis()
    axes.margins(x=0.2)
    said = ", ".join(
        f"{' '.join(name.split())} {text}" for name, text in zip(seconds, texts, strict=True)
    )
    return picture(axes, f"{title}: {said}.", colors=16)
