"""The pictures of the multi-GPU lesson."""

from collections.abc import Sequence
from typing import Any

from course_utils.figures import LOOKS, MUTED, Picture, lecture_axes, picture

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
        look: dict[str, Any] = {
            "alpha": 1 - 0.45 * index,
            "hatch": "//" * index,
            "edgecolor": "white",
        }
        bars = axes.bar(
            positions, list(times.values()), WIDTH - 0.02, color=LOOKS["cpu"]["color"], **look
        )
        labels = [f"{model}\n{gain:.2f}" for gain in times.values()]
        axes.bar_label(
            bars,
            labels,
            padding=4,
            zorder=3,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 1},
        )
    axes.axhline(2, color=MUTED, linestyle=":")
    axes.text(-0.45, 2.05, "twice as fast", color=MUTED)
    axes.set_xticks(range(len(ways)), ways)
    axes.set_ylim(0, 0.5 + max(2.1, *(gain for times in gains.values() for gain in times.values())))
    words = [
        f"{model} model, {way}: {gain:.2f}"
        for model, times in gains.items()
        for way, gain in times.items()
    ]
    return picture(axes, f"Bars of the speed relative to {ways[0]}. {'; '.join(words)}.")


def draw_all_reduce(own: Sequence[Sequence[float]], after: Sequence[float]) -> Picture:
    """Return bars of the gradient that each rank has of its own samples, and of what the all-reduce
    leaves in all.

    Args:
        own: for each rank, a number for each weight.
        after: the same for what all ranks have afterwards.
    """
    axes = lecture_axes("An all-reduce leaves the mean in every rank", "weight", "gradient")
    rows = [(f"rank {rank}, its samples", row) for rank, row in enumerate(own)] + [
        ("after, in every rank", after)
    ]
    looks = ((LOOKS["cpu"]["color"], ""), ("#56B4E9", "//"), ("#E69F00", ".."))
    width = 0.8 / len(rows)
    for index, ((name, row), (color, hatch)) in enumerate(zip(rows, looks, strict=False)):
        places = [weight + width * (index - 1) for weight in range(len(row))]
        axes.bar(places, row, width, label=name, edgecolor="white", color=color, hatch=hatch)
    axes.axhline(0, color=MUTED)
    axes.set_xticks(range(len(after)), [str(weight) for weight in range(len(after))])
    axes.margins(y=0.3)
    axes.legend(frameon=False, fontsize=20, ncols=3, loc="upper center", columnspacing=1)
    words = "; ".join(f"{name}: {', '.join(f'{value:.2f}' for value in row)}" for name, row in rows)
    return picture(axes, f"Bars of the gradient of each weight. {words}.")
