"""The pictures of lesson 1: a step against its batch, a forecast, and the images."""

from collections.abc import Callable, Mapping, Sequence

import torch
from torch.nn.functional import mse_loss

from course_lessons.data.images import Images
from course_lessons.data.models import AirRNN
from course_lessons.data.series import Scale, air_passengers, make_windows
from course_tools.figures import BLUE, MUTED, ORANGE, Picture, lecture_axes, picture
from course_utils.timing import time_call
from course_utils.units import format_seconds

BATCHES = (1, 4, 16, 64, 256, 1024, 4096)
HARDLY_MORE = 1.5  # times the step of one window


def air_windows() -> tuple[torch.Tensor, torch.Tensor]:
    """Return 89 windows of 20 months each, (89, 20, 1), and the same windows a month later.

    Their values are the growth over the same month of the year before, scaled to 0 to 1.
    """
    growth, scale = _growth()
    return make_windows(scale.apply(growth), length=20)


def _growth() -> tuple[torch.Tensor, Scale]:
    train, _ = air_passengers()
    growth = train[12:] / train[:-12]
    return growth, Scale.fit(growth)


def time_batches(batches: Sequence[int] = BATCHES) -> dict[int, float]:
    """Measure one training step of the RNN for each batch, in seconds, on one CPU thread."""
    inputs, targets = air_windows()
    times_s = {}
    for batch in batches:
        index = torch.arange(batch) % len(inputs)  # large batches repeat the windows
        step = _training_step(inputs[index], targets[index])
        times_s[batch] = time_call(step, device="cpu", threads=1, max_s=0.5).median_s
    return times_s


def _training_step(inputs: torch.Tensor, targets: torch.Tensor) -> Callable[[], None]:
    model = AirRNN()
    optimizer = torch.optim.Adam(model.parameters(), fused=True)

    def step() -> None:
        mse_loss(model(inputs), targets).backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


def draw_own_batches() -> Picture:
    """Draw the time of a training step on this machine against its batch."""
    return draw_batches(time_batches())


def draw_batches(times_s: Mapping[int, float]) -> Picture:
    """Draw the time of a step against its batch: mostly flat at first, then growing with it."""
    smallest, second, *_, largest = times_s
    alike = max(n for n in times_s if times_s[n] <= HARDLY_MORE * times_s[smallest])
    shown = second if alike == smallest else alike
    ratio = times_s[shown] / times_s[smallest]
    title = f"{shown} windows take {ratio:.1f} times as long as {smallest}"
    axes = lecture_axes(title, "windows in a batch (logarithmic)", "ms per step (logarithmic)")
    times_ms = [1e3 * time_s for time_s in times_s.values()]
    axes.loglog(list(times_s), times_ms, color=BLUE, marker="o")
    axes.set_xticks(list(times_s), [f"{batch:,}" for batch in times_s])
    ticks_ms = (0.5, 1, 2, 5, 10, 20, 50, 100, 200)
    axes.set_yticks(ticks_ms, [f"{tick:g}" for tick in ticks_ms])
    axes.minorticks_off()
    axes.set_ylim(times_ms[0] / 2, times_ms[-1] * 2)
    if alike > smallest:
        axes.text(1, 1.5 * times_ms[0], "flat: overhead,\nthe same for any batch", color=MUTED)
    middle = list(times_s)[-2]
    height_ms = 1.3 * 1e3 * times_s[middle]
    axes.text(0.6 * middle, height_ms, "grows with the batch:\nwork", color=MUTED, ha="right")
    ends = f"{format_seconds(times_s[smallest])} for {smallest} window"
    ends += f" and {format_seconds(times_s[largest])} for {largest:,}"
    return picture(axes, f"{title}: a step takes {ends}, on logarithmic axes.", colors=16)


def draw_forecast(model: AirRNN) -> Picture:
    """Draw the passengers of each month, and the model's forecast of the last 23.

    Args:
        model: trained on `air_windows`.
    """
    train, later = air_passengers()
    growth, scale = _growth()
    months = train.tolist()
    for each in scale.undo(model.forecast(scale.apply(growth)[-20:], steps=len(later))).tolist():
        months.append(months[-12] * each)
    forecast = months[len(train) :]
    error = ((torch.tensor(forecast) - later).abs() / later).mean()
    title = f"The forecast is off by {error:.1%} on average"
    axes = lecture_axes(title, "year", "thousands of passengers")
    years = [1949 + month / 12 for month in range(len(months))]
    axes.plot(years[: len(train)], train, color=BLUE)
    axes.plot(years[len(train) :], forecast, color=ORANGE, marker="o", markersize=7)
    axes.plot(years[len(train) :], later, color="black", linestyle="--")
    axes.text(1951.5, 330, f"{len(train)} months\nto train on", color=BLUE)
    axes.text(1955.2, 570, "forecast, dots", color=ORANGE)
    axes.text(1955.2, 610, "actual, dashed", color="black")
    words = f"{title}: {len(later)} months, in yearly waves that grow, after {len(train)}"
    return picture(axes, f"{words} to train on.", colors=16)


def draw_images(images: Images) -> Picture:
    """Draw the first image of each class, with its name."""
    axes = lecture_axes(f"One image of each of {len(images.classes)} classes")
    for label, name in enumerate(images.classes):
        row, column = divmod(label, 5)
        first = (images.train_labels == label).nonzero()[0, 0]
        left, bottom = 1.3 * column, -1.4 * row
        pixels = images.train[first].permute(1, 2, 0).numpy()  # (32, 32, 3)
        axes.imshow(pixels, extent=(left, left + 1, bottom, bottom + 1))
        axes.text(left + 0.5, bottom - 0.08, name, ha="center", va="top")
    axes.set(xlim=(-0.1, 6.3), ylim=(-1.75, 1.1))
    axes.axis("off")
    return picture(axes, f"One small image of each class: {', '.join(images.classes)}.", colors=64)
