"""The pictures of lesson 10: how many times as fast a GPU trains each forecaster."""

from collections.abc import Mapping
from dataclasses import dataclass

from matplotlib.ticker import FuncFormatter

from course_tools.figures import LOOKS, MUTED, Picture, lecture_axes, picture

CLEAR = {"facecolor": "white", "edgecolor": "none", "pad": 2}  # behind text that meets a line
CPU, GPU = LOOKS["cpu"]["color"], LOOKS["cuda"]["color"]


@dataclass(frozen=True)
class PublishedTimes:
    """The published seconds of one epoch of a Darts model on a CPU and on a GPU."""

    model: str
    batch: int
    bits: int
    cpu_s: float
    gpu_s: float

    @property
    def times(self) -> float:
        """How many times as fast the GPU is."""
        return self.cpu_s / self.gpu_s


# Darts' user guide, docs/userguide/torch_forecasting_models.md at commit 2be8e43 (Apache-2.0),
# "Example Benchmark", in the guide since January 2022: the first 80 % of EnergyDataset (28 series
# in one), 48 hours to forecast 12, Intel i9-10900K and NVIDIA RTX 2080 Super. Of the numbers of
# workers that were tried (0, 2, 4), each device has its fastest.
PUBLISHED = (
    PublishedTimes("TFT", batch=1024, bits=32, cpu_s=31.9, gpu_s=31.0),
    PublishedTimes("TFT", batch=32, bits=32, cpu_s=62.6, gpu_s=58.0),
    PublishedTimes("N-BEATS", batch=32, bits=32, cpu_s=115.0, gpu_s=40.6),
    PublishedTimes("N-BEATS", batch=1024, bits=32, cpu_s=27.4, gpu_s=1.65),
)
# Steps per second of the 481-parameter RNN on a CPU and on a GPU, neither of which is named:
# docs/userguide/gpu_and_tpu_usage.md at the same commit, in it since March 2022.
RNN_STEPS_PER_S = (42.49, 39.81)


def draw_published() -> Picture:
    """Draw how many times as fast as a CPU a GPU trained Darts models, as Darts published it."""
    cpu_rate, gpu_rate = RNN_STEPS_PER_S
    rows = {"RNN, batch 16": (gpu_rate / cpu_rate, gpu_rate / cpu_rate)}
    for one in PUBLISHED:
        rows[f"{one.model}, batch {one.batch:,}"] = (one.times, one.times)
    times = [high for _, high in rows.values()]
    title = f"A GPU: {times_text(min(times))} to {times_text(max(times))} times as fast"
    return draw_times(rows, title, "published")


def draw_times(rows: Mapping[str, tuple[float, float]], title: str, source: str) -> Picture:
    """Draw how many times as fast as a CPU a GPU is, from least to most, a row for each name."""
    axes = lecture_axes(title, "times as fast as the CPU (logarithmic)")
    places = range(len(rows), 0, -1)
    said = []
    for place, (name, (low, high)) in zip(places, rows.items(), strict=True):
        middle = (low * high) ** 0.5
        if high > low:
            axes.plot([low, high], [place] * 2, color=GPU, linewidth=14, solid_capstyle="butt")
            text = f"{times_text(low)} to {times_text(high)}, {source}"
        else:
            axes.plot(low, place, color=GPU, marker="D", markersize=16)
            text = f"{times_text(low)} times, {source}"
        axes.annotate(
            text, (middle, place), (0, 20), textcoords="offset points", ha="center", bbox=CLEAR
        )
        said.append(f"{name}: {text}")
    axes.axvline(1, color=CPU, linestyle=":", zorder=0)
    axes.annotate("as fast as the CPU", (1, 0.45), (8, 0), textcoords="offset points", color=MUTED)
    axes.set_xscale("log")
    axes.set(ylim=(0.4, len(rows) + 0.7), yticks=list(places), yticklabels=list(rows))
    ends = [1.0, *(end for pair in rows.values() for end in pair)]
    axes.set_xlim(min(ends) / 3, 3 * max(ends))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    axes.xaxis.set_minor_formatter(FuncFormatter(lambda value, _: ""))
    alt = f"How many times as fast as the CPU a GPU is. {'; '.join(said)}."
    return picture(axes, alt, colors=32)


def times_text(times: float) -> str:
    """Return a factor to about two digits: "0.94", "1.0", "17"."""
    if times >= 10:
        return f"{times:,.0f}"
    return f"{times:.1f}" if times >= 1 else f"{times:.2f}"
