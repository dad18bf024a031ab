"""The pictures of the multi-GPU lesson."""

import math
from typing import Any

from course_tools.estimate.time.published import published
from course_tools.figures import BLUE, MUTED, ORANGE, Picture, lecture_axes, picture

SKY = "#56B4E9"
DARK = "#111111"
NUMBERS = {"fp16": "16-bit numbers\n(mixed precision)", "tf32": "32-bit numbers\n(TF32)"}


def draw_published_scaling() -> Picture:
    """Draw how many times as fast as one GPU eight of them train, as NVIDIA published it."""
    speeds_of = {}
    for precision in NUMBERS:
        same = {"model": "resnet50", "device": "A100 80GB", "precision": precision}
        found = [published(**same, training=True, count=count)[0] for count in (1, 8)]
        speeds_of[precision] = [row.samples_per_s for row in found]
    gains = [eight / one for one, eight in speeds_of.values()]
    axes = lecture_axes(
        f"Eight GPUs train {min(gains):.1f} to {max(gains):.1f} times as fast",
        "speed on ResNet-50, one A100 = 1 (published)",
    )
    words = []
    for position, (precision, (one, eight)) in enumerate(speeds_of.items()):
        gain = gains[position]
        axes.barh(position, gain, 0.5, color=ORANGE)
        speeds = f"{one:,.0f} images/s -> {eight:,.0f} images/s"
        axes.text(0.1, position, speeds, color=DARK, va="center")
        axes.text(gain - 0.1, position, f"{gain:.1f}", color=DARK, va="center", ha="right")
        words.append(f"{precision}: {speeds}, {gain:.1f} times")
    axes.axvline(8, color=MUTED, linestyle=":")
    axes.text(7.9, 1.45, "if nothing were lost: 8", color=MUTED, ha="right")
    axes.set_yticks(range(len(NUMBERS)), list(NUMBERS.values()))
    axes.set(ylim=(-0.5, 1.75), xlim=(0, 8.4))
    return picture(axes, f"Bars for eight A100 GPUs that train ResNet-50. {'; '.join(words)}.")


def draw_ddp() -> Picture:
    """Draw one step of DDP with two ranks, from left to right."""
    axes = _canvas("DDP: same model, other samples, one mean")
    for y, rank, samples, color in ((6.3, 0, "0, 2, 4, 6 ...", BLUE), (1.3, 1, "1, 3, 5 ...", SKY)):
        _box(axes, 0.1, y, 2.5, f"rank {rank}\nsamples\n{samples}", color)
        _box(axes, 3.3, y, 2.2, "copy of\nthe model", MUTED)
        _box(axes, 6.2, y, 2.3, "gradient of\nits samples", color)
        _box(axes, 10.4, y, 2.3, "same step,\nsame weights", MUTED)
        for start, end in ((2.6, 3.3), (5.5, 6.2)):
            _arrow(axes, (start, y + 1), (end, y + 1))
    _box(axes, 8.0, 3.8, 2.8, "all-reduce:\nmean of both", ORANGE)
    for y, edge in ((6.3, 5.8), (3.3, 3.8)):
        _arrow(axes, (7.6, y), (8.4, edge))
        _arrow(axes, (10.4, edge), (11.2, y))
    alt = "Two ranks, each with a copy of the model and with samples of its own. Each computes the "
    alt += "gradient of its samples; an all-reduce takes the mean; both make the same step."
    return picture(axes, alt)


def draw_ring(ranks: int = 4) -> Picture:
    """Draw the ring in which ranks add up their gradients."""
    axes = _canvas("A ring: each rank sends only to the next")
    places = []
    for rank in range(ranks):
        angle = math.pi / 2 - 2 * math.pi * rank / ranks
        places.append((3.1 + 2.3 * math.cos(angle), 4.5 + 2.9 * math.sin(angle)))
    for rank, (x, y) in enumerate(places):
        _box(axes, x - 0.7, y - 0.6, 1.4, f"rank {rank}", BLUE, height=1.2)
        other_x, other_y = places[(rank + 1) % ranks]
        start = (x + 0.3 * (other_x - x), y + 0.3 * (other_y - y))
        end = (x + 0.7 * (other_x - x), y + 0.7 * (other_y - y))
        _arrow(axes, start, end)
    lines = [
        f"The gradients are cut into {ranks} pieces.",
        f"{ranks - 1} times: send a piece on, and add.",
        "Each rank now has one finished piece.",
        f"{ranks - 1} times: send a finished piece on.",
        "",
        f"Sent by each rank: {2 * (ranks - 1)}/{ranks} of the gradients.",
        "With many ranks: never more than twice.",
    ]
    axes.text(7.0, 4.5, "\n".join(lines), va="center", linespacing=1.7)
    return picture(axes, f"{ranks} ranks in a ring; each sends to the next. {' '.join(lines)}")


def _canvas(title: str) -> Any:
    axes = lecture_axes(title)
    axes.set(xlim=(0, 12.8), ylim=(0, 9))
    axes.axis("off")
    return axes


def _box(
    axes: Any, x: float, y: float, width: float, text: str, color: str, *, height: float = 2
) -> None:
    from matplotlib.patches import FancyBboxPatch

    style = "round,pad=0,rounding_size=0.15"
    look: dict[str, Any] = {"facecolor": "white", "edgecolor": color, "linewidth": 5}
    axes.add_patch(FancyBboxPatch((x, y), width, height, style, **look))
    middle = (x + width / 2, y + height / 2)
    axes.text(*middle, text, ha="center", va="center", color=DARK)


def _arrow(axes: Any, start: tuple[float, float], end: tuple[float, float]) -> None:
    style = {"arrowstyle": "-|>", "color": "black", "linewidth": 3, "mutation_scale": 25}
    axes.annotate("", end, start, arrowprops=style)
