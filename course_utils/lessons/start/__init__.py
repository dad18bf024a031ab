"""What lesson 0 alone needs: its picture, who initialized CUDA, and machines that are not this one."""

from collections.abc import Mapping

from course_utils.display.figures import LOOKS, Picture, lecture_axes, picture
from course_utils.display.units import format_seconds
from course_utils.lessons.progress import progress
from course_utils.lessons.start.cases import other_machines
from course_utils.lessons.start.cuda_watch import CudaWatch, is_cuda_initialized

__all__ = ["CudaWatch", "draw_times", "is_cuda_initialized", "other_machines", "progress"]


def draw_times(seconds: Mapping[str, float], title: str) -> Picture:
    """Draw one bar for each device, with its time beside it.

    Args:
        seconds: by the device's name, from top to bottom; a name that contains "CPU" is drawn as one.
        title: what the picture shows.
    """
    axes = lecture_axes(title, "minutes")
    colours = [LOOKS["cpu" if "CPU" in name else "cuda"]["color"] for name in seconds]
    bars = axes.barh(list(seconds), [time / 60 for time in seconds.values()], color=colours, height=0.6)
    texts = [format_seconds(time) for time in seconds.values()]
    axes.bar_label(bars, texts, padding=10, fontsize=24)
    axes.invert_yaxis()
    axes.margins(x=0.2)
    said = ", ".join(f"{name.replace(chr(10), ' ')} {text}" for name, text in zip(seconds, texts, strict=True))
    return picture(axes, f"{title}: {said}.", colors=16)
