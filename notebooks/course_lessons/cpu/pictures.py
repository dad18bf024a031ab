"""The pictures of lesson 1: the time of a step against its batch, and the series."""

from collections.abc import Callable, Mapping

import torch
from torch.nn.functional import mse_loss

from course_lessons.data.models import AirRNN
from course_lessons.data.series import Scale, air_passengers, make_windows
from course_tools.figures import BLUE, MUTED, ORANGE, Picture, lecture_axes, picture
from course_utils.text import format_seconds
from course_utils.timing import time_call

BATCHES = (1, 4, 16, 64, 256, 1024, 4096)
HARDLY_MORE = 1.5  # times the step of one window


def time_batches() -> dict[int, float]:
    """Measure one training step of the RNN for each batch, in seconds, on one CPU thread."""
    train, _ = air_passengers()
    growth = train[12:] / train[:-12]
    inputs, targets = make_windows(Scale.fit(growth).apply(growth), length=20)
    times_s = {}
    for batch in BATCHES:
        index = torch.arange(batch) % len(inputs)  # large batches repeat the windows
        step = _training_step(inputs[index], targets[index])
        times_s[batch] = time_call(step, device="cpu", threads=1, max_s=0.5).median_s
    return times_s


def _training_step(inputs: torch.Tensor, targets: torch.Tensor) -> Callable[[], None]:
    model = AirRNN()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)

    def step() -> None:
        mse_loss(model(inputs), targets).backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


def draw_batches(times_s: Mapping[int, float]) -> Picture:
    """Draw the time of a step against its batch: flat at first, then growing with it."""
    smallest, *_, largest = times_s
    alike = max(n for n in times_s if times_s[n] <= HARDLY_MORE * times_s[smallest])
    ratio = times_s[alike] / times_s[smallest]
    title = f"{alike} windows take {ratio:.1f} times as long as {smallest}"
    axes = lecture_axes(title, "windows in a batch (logarithmic)", "ms a step (logarithmic)")
    times_ms = [1e3 * time_s for time_s in times_s.values()]
    axes.loglog(list(times_s), times_ms, color=BLUE, marker="o")
    axes.set_xticks(list(times_s), [f"{batch:,}" for batch in times_s])
    ticks_ms = (0.5, 1, 2, 5, 10, 20, 50, 100, 200)
    axes.set_yticks(ticks_ms, [f"{tick:g}" for tick in ticks_ms])
    axes.minorticks_off()
    axes.set_ylim(times_ms[0] / 2, times_ms[-1] * 2)
    axes.text(1, 1.5 * times_ms[0], "flat: overhead,\nthe same for any batch", color=MUTED)
    middle = list(times_s)[-2]
    height_ms = 1.3 * 1e3 * times_s[middle]
    axes.text(0.6 * middle, height_ms, "grows with the batch:\nwork", color=MUTED, ha="right")
    ends = f"{format_seconds(times_s[smallest])} for {smallest} window"
    ends += f" and {format_seconds(times_s[largest])} for {largest:,}"
    return picture(axes, f"{title}: a step takes {ends}, on logarithmic axes.", colors=16)


def draw_series(
    train: torch.Tensor, later: torch.Tensor, title: str, forecast: torch.Tensor | None = None
) -> Picture:
    """Draw the months to train on, those kept aside, and a forecast of these.

    Args:
        train: thousands of passengers to train on, (months,).
        later: those kept aside, (months,).
        title: what the picture shows.
        forecast: of the months kept aside, (months,).
    """
    axes = lecture_axes(title, "month", "thousands of passengers")
    months = range(len(train) + len(later))
    axes.plot(months[: len(train)], train, color=BLUE)
    axes.plot(months[len(train) :], later, color=MUTED, linestyle="--")
    axes.text(30, 330, f"{len(train)} months\nto train on", color=BLUE)
    words = f"Passengers rise in yearly waves; the last {len(later)} months are dashed"
    if forecast is None:
        axes.text(70, 580, f"{len(later)} months to forecast", color=MUTED)
    else:
        axes.plot(months[len(train) :], forecast, color=ORANGE, marker="o", markersize=7)
        axes.text(82, 570, "forecast, dots", color=ORANGE)
        axes.text(82, 610, "measured, dashed", color=MUTED)
        words += "; the dots of the forecast follow them closely"
    return picture(axes, f"{words}.", colors=16)
