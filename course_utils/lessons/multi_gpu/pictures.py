"""The picture of the multi-GPU lesson."""

from typing import Any

from course_utils.display.figures import LOOKS, MUTED, Picture, lecture_axes, picture

WIDTH = 0.38  # of a bar; two stand side by side for each way


def draw_gains(gains: dict[str, dict[str, float]], title: str) -> Picture:
    """Return bars of how many times as fast each way to train is, for two models.

    Args:
        gains: for each model, the speed of each way to train relative to the first.
        title: of the picture.
    """
    axes = lecture_axes(title, "", "speed, one core = 1")
    ways = list(next(iter(gains.values())))
    for index, (model, times) in enumerate(gains.items()):
        positions = [way + WIDTH * (index - 0.5) for way in range(len(ways))]
        look: dict[str, Any] = {"alpha": 1 - 0.45 * index, "hatch": "//" * index, "edgecolor": "white"}
        bars = axes.bar(positions, list(times.values()), WIDTH - 0.02, color=LOOKS["cpu"]["color"], **look)
        labels = [f"{model}\n{gain:.2f}" for gain in times.values()]
        box = {"facecolor": "white", "edgecolor": "none", "pad": 1}
        axes.bar_label(bars, labels, padding=4, zorder=3, bbox=box)
    axes.axhline(2, color=MUTED, linestyle=":")
    axes.text(-0.45, 2.05, "twice as fast", color=MUTED)
    axes.set_xticks(range(len(ways)), ways)
    axes.set_ylim(0, 0.5 + max(2.1, *(gain for times in gains.values() for gain in times.values())))
    words = [f"{model} model, {way}: {gain:.2f}" for model, times in gains.items() for way, gain in times.items()]
    return picture(axes, f"Bars of the speed relative to {ways[0]}. {'; '.join(words)}.")
