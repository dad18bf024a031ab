"""The pictures of lesson 0: the time of one job on several devices."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from course_tools.estimate.time.published import Speed, published
from course_tools.figures import BLUE, ORANGE, Picture, lecture_axes, picture
from course_utils.text import format_seconds

if TYPE_CHECKING:
    import pandas as pd

JOB = 50_000  # photographs, as many as ImageNet's validation set has


def published_rows() -> dict[str, Speed]:
    """Return published speeds of ResNet-50 on a laptop's CPU, on a free GPU and on a new one."""
    forward = {"model": "resnet50", "image": 224, "training": False, "count": 1}
    t4 = {**forward, "device": "T4", "compiled": False}
    new = {**forward, "device": "RTX 5090", "compiled": False}
    return {
        "laptop CPU\ni7-12700H": published(device="Core i7-12700H", **forward)[0],
        "T4, a free GPU,\n32 bits": published(batch=16, precision="fp32", **t4)[0],
        "T4, a free GPU,\n16 bits": published(batch=128, precision="fp16", **t4)[0],
        "RTX 5090 of 2025,\n16 bits": published(precision="fp16", **new)[0],
    }


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
                "images/s": round(row.samples_per_s),
                "batch": row.batch,
                "number format": "16 bits" if row.precision == "fp16" else "32 bits",
                "compiled": "yes" if row.compiled else "no",
                "torch": row.torch,
                "published in": row.source,
            }
        )
    return pd.DataFrame(rows).set_index("device")


def draw_own_times(images_per_s: Mapping[str, float]) -> Picture:
    """Draw how long this machine's devices take for the job, beside a T4 with 32-bit numbers.

    Args:
        images_per_s: measured here, by the device's name; "this CPU" comes first.
    """
    seconds = {f"{name},\nmeasured": JOB / rate for name, rate in images_per_s.items()}
    slowest, *faster = images_per_s.values()
    title = f"Your CPU takes {format_seconds(JOB / slowest)} for this job"
    if faster:
        title = f"{faster[0] / slowest:.0f} times as fast as your CPU"
    seconds["T4,\npublished"] = JOB / published_rows()["T4, a free GPU,\n32 bits"].samples_per_s
    return draw_times(seconds, title, "ResNet-50, 32 bits")


def draw_times(seconds: Mapping[str, float], title: str, note: str) -> Picture:
    """Draw one bar for each device, with its time beside it.

    Args:
        seconds: by the device's name, from top to bottom; a name that contains "CPU" is drawn as
            one.
        title: what the picture shows.
        note: what stands behind the unit on the axis.
    """
    axes = lecture_axes(title, f"minutes for {JOB:,} photographs ({note})")
    colours = [BLUE if "CPU" in name else ORANGE for name in seconds]
    minutes = [time_s / 60 for time_s in seconds.values()]
    bars = axes.barh(list(seconds), minutes, color=colours, height=0.6)
    texts = [format_seconds(time_s) for time_s in seconds.values()]
    axes.bar_label(bars, texts, padding=10, fontsize=24)
    axes.invert_yaxis()
    axes.margins(x=0.25)
    parts = [f"{' '.join(name.split())} {text}" for name, text in zip(seconds, texts, strict=True)]
    return picture(axes, f"{title}: {', '.join(parts)}.", colors=16)
