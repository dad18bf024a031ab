"""What lesson 1 needs beside the helper package: its pictures, the timeline, and the work of a
paired timing.
"""

from collections.abc import Sequence

import torch

from course_lessons.exercises.progress import progress
from course_utils.figures import LOOKS, MUTED, Picture, label_end, lecture_axes, picture
from course_utils.in_turn import Work
from course_utils.timeline.record import timeline

CPU, FORECAST = LOOKS["cpu"]["color"], LOOKS["cuda"]["color"]


def draw_series(
    train: torch.Tensor, later: torch.Tensor, title: str, forecast: torch.Tensor | None = None
) -> Picture:
    """Draw the months to train on, those kept aside, and a forecast of these: thousands of
    passengers, (months,).
    """
    axes = lecture_axes(title, "month", "thousands of passengers")
    months = range(len(train) + len(later))
    axes.plot(months[: len(train)], train, color=CPU)
    axes.plot(months[len(train) :], later, color=MUTED, linestyle="--")
    axes.text(30, 330, f"{len(train)} months\nto train on", color=CPU)
    said = f"Passengers rise in yearly waves; the last {len(later)} months are dashed"
    if forecast is None:
        axes.text(70, 580, f"{len(later)} months to forecast", color=MUTED)
    else:
        axes.plot(months[len(train) :], forecast, color=FORECAST, marker="o", markersize=7)
        axes.text(82, 570, "forecast, dots", color=FORECAST)
        axes.text(82, 610, "measured, dashed", color=MUTED)
        said += "; the dots of the forecast follow them closely"
    return picture(axes, f"{said}.", colors=16)


def draw_stack(added: Sequence[str], runs_ms: Sequence[Sequence[float]], where: str) -> Picture:
    """Draw how many milliseconds each way of training, fastest first, adds to a step; `where`:
    machine and date.
    """
    medians = [sorted(runs)[len(runs) // 2] for runs in runs_ms]
    starts = [0.0, *medians[:-1]]
    across = f"milliseconds of one step (black: fastest to slowest run)\n{where}"
    axes = lecture_axes("What a step of a small model is spent on", across)
    axes.barh(
        list(added),
        [end - start for start, end in zip(starts, medians, strict=True)],
        left=starts,
        color=CPU,
    )
    for row, (start, end, runs) in enumerate(zip(starts, medians, runs_ms, strict=True)):
        axes.plot([min(runs), max(runs)], [row + 0.32] * 2, color="black", marker="|", linewidth=2)
        label_end(
            axes,
            max(*runs, end),
            row,
            f"+{end - start:.2f} = {end:.2f}" if row else f"{end:.2f}",
            "black",
        )
    axes.invert_yaxis()
    axes.margins(x=0.3)
    said = "; ".join(
        f"{name.replace(chr(10), ' ')}, to {end:.2f}"
        for name, end in zip(added, medians, strict=True)
    )
    return picture(axes, f"Milliseconds of one step, stacked, {where}: {said}.", colors=16)
