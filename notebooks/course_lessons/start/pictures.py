"""The pictures of lesson 0: the time of one job on several devices."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from course_utils.estimate.speeds import Speed, published
from course_utils.figures import BLUE, ORANGE, Picture, lecture_axes, picture
from course_utils.text import format_seconds

if TYPE_CHECKING:
    import pandas as pd

JOB = 50_000  # photographs, as many as ImageNet's validation set has


def published_rows() -> dict[str, Speed]:
    """Return published speeds of ResNet-50 on a laptop's CPU, on a free GPU and on a new one."""
    forward = {"model": "resnet50", "image": 224, "training": False, "count": 1}
    half = {**forward, "precision": "fp16", "compiled": False}
    return {
        "laptop CPU\ni7-12700H": published(device="Core i7-12700H", **forward)[0],
        "T4, the free GPU\nof Colab and Kaggle": published(device="T4", batch=128, **half)[0],
        "RTX 5090,\na GPU of 2025": published(device="RTX 5090", **half)[0],
    }


def draw_published_times() -> Picture:
    """Draw how long each of the published devices takes for the job."""
    seconds = {f"{name}": JOB / row.samples_per_s for name, row in published_rows().items()}
    return draw_times(seconds, "Half an hour on a CPU, seconds on a GPU", "published speeds")


def published_conditions() -> "pd.DataFrame":
    """Return a table of how the published speeds were measured, with a row for each device."""
    import pandas as pd

    rows = []
    for row in published_rows().values():
        rows.append(
            {
                "device": row.device,
                "images/s": round(row.samples_per_s),
                "batch": row.batch,
                "numbers": "16 bits" if row.precision == "fp16" else "32 bits",
                "compiled": "yes" if row.compiled else "no",
                "torch": row.torch,
                "published in": row.source,
            }
        )
    return pd.DataFrame(rows).set_index("device")


def draw_own_times(images_per_s: Mapping[str, float]) -> Picture:
    """Draw how long this machine's devices take for the job, beside the published ones.

    Args:
        images_per_s: measured here, by the device's name; "this CPU" comes first.
    """
    own = {f"{name},\nmeasured": JOB / rate for name, rate in images_per_s.items()}
    others = {f"{name},\npublished": JOB / row.samples_per_s for name, row in _two_others().items()}
    slowest, *faster = images_per_s.values()
    if faster:
        title = f"Your accelerator: {faster[0] / slowest:.0f} times your CPU"
    else:
        title = f"Your CPU takes {format_seconds(JOB / slowest)} for this job"
    return draw_times({**own, **others}, title, "ResNet-50")


def _two_others() -> dict[str, Speed]:
    rows = list(published_rows().values())
    return {row.device: row for row in rows[1:]}


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
