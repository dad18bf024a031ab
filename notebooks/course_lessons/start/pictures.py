"""The pictures of lesson 0: the time of one job on several devices."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from course_lessons.evidence.published import Speed, published
from course_tools.figures import BLUE, ORANGE, Picture, lecture_axes, picture
from course_utils.timing import Timing
from course_utils.units import format_seconds

if TYPE_CHECKING:
    import pandas as pd

JOB = 50_000  # photographs, as many as ImageNet's validation set has


def published_rows() -> dict[str, Speed]:
    """Return published speeds of ResNet-50 on a laptop's CPU, on a free GPU and on a new one."""
    forward = {"model": "resnet50", "image": 224, "training": False, "count": 1}
    new = {**forward, "device": "RTX 5090", "compiled": False}
    return {
        "laptop CPU i7-12700H,\none at a time": published(device="Core i7-12700H", **forward)[0],
        "T4, a free GPU,\none at a time": _t4(1, "fp32"),
        "T4, 16 at a time": _t4(16, "fp32"),
        "T4, 128 at a time,\n16-bit numbers": _t4(128, "fp16"),
        "RTX 5090, 1,024 at a\ntime, 16-bit numbers": published(precision="fp16", **new)[0],
    }


# Images per second in NVIDIA's column "Throughput Avg". The table of published speeds has the batch
# divided by the column "Latency Avg" instead, which is up to 6 % less.
T4_IMAGES_PER_S = {(1, "fp32"): 98.0, (16, "fp32"): 409.0, (128, "fp16"): 1190.0}


def _t4(batch: int, precision: str) -> Speed:
    (row,) = published(
        device="T4", model="resnet50", image=224, training=False, batch=batch, precision=precision
    )
    return replace(row, samples_per_s=T4_IMAGES_PER_S[batch, precision])


def draw_published_times() -> Picture:
    """Draw how long each of the published devices takes for the job."""
    seconds = {name: JOB / row.samples_per_s for name, row in published_rows().items()}
    title = f"{JOB:,} photographs: half an hour or {min(seconds.values()):.0f} seconds"
    return draw_times(seconds, title, "published speeds")


def published_conditions() -> "pd.DataFrame":
    """Return a table of how the published speeds were measured, with a row for each of them."""
    import pandas as pd

    rows = []
    for row in published_rows().values():
        rows.append(
            {
                "device": row.device,
                "images/s": f"{row.samples_per_s:,.1f}".removesuffix(".0"),
                "batch": f"{row.batch:,}",
                "number format": "16 bits" if row.precision == "fp16" else "32 bits",
                "compiled": "yes" if row.compiled else "no",
                "torch": row.torch,
                "published in": row.source,
            }
        )
    # the name of the index would take a line of its own
    return pd.DataFrame(rows).set_index("device").rename_axis(columns="device", index=None)


def draw_own_times(timings: Mapping[str, Timing], batch: int) -> Picture:
    """Draw how long this machine's devices take for the job, beside two published devices.

    A bar whose timing is unreliable is hatched, and its number is never the title.

    Args:
        timings: of a batch, measured here, by the device's name; "this CPU" comes first.
        batch: photographs in it.
    """
    seconds, doubtful = {}, []
    for name, timing in timings.items():
        label = f"{name},\nmeasured"
        seconds[label] = JOB / batch * timing.median_s
        if timing.warnings:
            doubtful.append(label)
    slowest, *faster = seconds.values()
    if doubtful:
        title = "Busy machine: run this cell again"
    elif faster:
        title = f"Accelerator: {slowest / faster[0]:.2g} times as fast as your CPU"
    else:
        title = f"Your CPU takes {_on_the_axis(slowest)} for this job"
    laptop, *_ = published_rows().values()
    seconds["laptop CPU, published\n(1 at a time, compiled)"] = JOB / laptop.samples_per_s
    seconds["T4, published\n(16 at a time)"] = JOB / T4_IMAGES_PER_S[16, "fp32"]
    return draw_times(seconds, title, "ResNet-50, 32 bits", doubtful)


def draw_times(
    seconds: Mapping[str, float], title: str, note: str, doubtful: Collection[str] = ()
) -> Picture:
    """Draw one bar for each device, with its time beside it.

    Args:
        seconds: by the device's name, from top to bottom; a name that contains "CPU" is drawn as
            one.
        title: what the picture shows.
        note: what stands behind the unit on the axis.
        doubtful: the names whose times are unreliable: their bars are hatched.
    """
    axes = lecture_axes(title, f"minutes for {JOB:,} photographs ({note})")
    colours = [BLUE if "CPU" in name else ORANGE for name in seconds]
    # An unreliable bar ends where it can still be seen that others are shorter.
    sure_s = max(time_s for name, time_s in seconds.items() if name not in doubtful)
    drawn_s = [
        min(time_s, 1.3 * sure_s) if name in doubtful else time_s
        for name, time_s in seconds.items()
    ]
    minutes = [time_s / 60 for time_s in drawn_s]
    bars = axes.barh(list(seconds), minutes, color=colours, height=0.6)
    texts = []
    for bar, (name, time_s) in zip(bars, seconds.items(), strict=True):
        text = _on_the_axis(time_s)
        if name in doubtful:
            bar.set(hatch="//", edgecolor="white")
            text = "run again"
        texts.append(text)
    axes.bar_label(bars, texts, padding=10, fontsize=24)
    axes.invert_yaxis()
    axes.margins(x=0.35 if doubtful else 0.25)
    parts = []
    for name, text in zip(seconds, texts, strict=True):
        doubt = "unreliable: " if name in doubtful else ""
        parts.append(f"{' '.join(name.split())} {doubt}{text}")
    return picture(axes, f"{title}: {', '.join(parts)}.", colors=16)


def _on_the_axis(time_s: float) -> str:
    """Return a time such as "27.3 min", the axis' unit; "5.1 s" or "16.8 h" if that is too small
    or too large.
    """
    if time_s < 60 or time_s >= 2 * 3600:
        return format_seconds(time_s)
    return f"{float(f'{time_s / 60:.3g}'):,g} min"
