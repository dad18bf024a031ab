"""The pictures of lesson 10: what a GPU makes faster in Darts, and what it leaves as it is."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter

from course_tools.figures import (
    AMBER,
    LOOKS,
    MUTED,
    Picture,
    label_text,
    lecture_axes,
    picture,
)

CPU, GPU = LOOKS["cpu"]["color"], LOOKS["cuda"]["color"]


@dataclass(frozen=True)
class PublishedEpochs:
    """The published seconds of one epoch of a Darts model on a CPU and on a GPU, by workers."""

    model: str
    batch: int
    cpu_s: Mapping[int, float]  # number of workers: seconds
    gpu_s: Mapping[int, float]

    @property
    def by_default(self) -> float:
        """How many times as fast the GPU is without workers, which is Darts' default."""
        return self.cpu_s[0] / self.gpu_s[0]

    @property
    def at_best(self) -> float:
        """How many times as fast the GPU is if each device has its fastest number of workers."""
        return min(self.cpu_s.values()) / min(self.gpu_s.values())


# Darts' user guide, docs/userguide/torch_forecasting_models.md at commit 2be8e43 (Apache-2.0),
# "Example Benchmark", in the guide since January 2022: the first 80 % of EnergyDataset (28 series
# in one), 48 hours to forecast 12, Intel i9-10900K and NVIDIA RTX 2080 Super, in 32 bits.
PUBLISHED = (
    PublishedEpochs("TFT", 1024, {0: 31.9, 2: 45.0, 4: 44.0}, {0: 41.0, 2: 31.0, 4: 31.0}),
    PublishedEpochs("TFT", 32, {0: 70.0, 2: 62.6, 4: 63.6}, {0: 73.0, 2: 58.0}),
    PublishedEpochs("N-BEATS", 32, {0: 117.0, 2: 115.0, 4: 117.0}, {0: 41.5, 2: 40.6}),
    PublishedEpochs("N-BEATS", 1024, {0: 28.4, 2: 27.4, 4: 27.5}, {0: 2.8, 2: 1.65, 4: 1.8}),
)


def draw_published() -> Picture:
    """Draw how many times as fast as a CPU a GPU trained Darts models, as Darts published it."""
    times = [one.by_default for one in PUBLISHED]
    title = f"A GPU: {times_text(min(times))} to {times_text(max(times))} times as fast by default"
    axes = lecture_axes(title, "GPU's speed / CPU's speed, published (logarithmic)")
    places = range(len(PUBLISHED), 0, -1)
    said = []
    for place, one in zip(places, PUBLISHED, strict=True):
        axes.plot(one.at_best, place, color=GPU, marker="D", markersize=18, fillstyle="none")
        axes.plot(one.by_default, place, color=GPU, marker="D", markersize=18)
        text = f"{times_text(one.by_default)} ({times_text(one.at_best)} with workers)"
        right = max(one.by_default, one.at_best)
        offset: Any = {"xytext": (22, 0), "textcoords": "offset points", "va": "center"}
        axes.annotate(text, (right, place), **offset)
        said.append(f"{one.model}, batch {one.batch:,}: {text}")
    axes.axvline(1, color=CPU, linestyle=":", zorder=0)
    axes.annotate("equal", (1, 0.45), (-8, 0), textcoords="offset points", ha="right", color=MUTED)
    axes.set_xscale("log")
    names = [f"{one.model}, batch {one.batch:,}" for one in PUBLISHED]
    axes.set(ylim=(0.4, len(names) + 0.7), yticks=list(places), yticklabels=names)
    axes.set_xlim(0.4, 150)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    axes.xaxis.set_minor_formatter(FuncFormatter(lambda value, _: ""))
    return picture(axes, f"How many times as fast as the CPU a GPU is. {'; '.join(said)}.")


def draw_steps(steps: Mapping[str, tuple[float, float, float, float]], gpu: str) -> Picture:
    """Draw a step on the CPU, and below it the same step if a GPU takes the network over.

    Args:
        steps: for each name the seconds of a step here, of what stays on the CPU, and the least
            and the most that the network takes on the GPU.
        gpu: the name of the GPU.
    """
    ranges = {name: " to ".join(map(times_text, gains(step))) for name, step in steps.items()}
    best = max(steps, key=lambda name: gains(steps[name])[0])
    title = label_text(f"{gpu}: {ranges[best]} times as fast at {best}", 45)
    axes = lecture_axes(title, "time per step, in % of this CPU's step")
    names, said = [], []
    for number, (name, step) in enumerate(steps.items()):
        whole, around, least, most = step
        here, there = -3 * number, -3 * number - 1
        around, least, most = (100 * part / whole for part in (around, least, most))
        axes.barh([here, there], [around] * 2, color=AMBER, height=0.8)
        axes.barh(here, 100 - around, left=around, color=CPU, height=0.8)
        axes.barh(there, least, left=around, color=GPU, height=0.8)
        doubt: Any = {"facecolor": "none", "edgecolor": GPU, "hatch": "//", "linewidth": 0}
        axes.barh(there, most - least, left=around + least, height=0.8, **doubt)
        names += [f"{name}, CPU", gpu]
        low, high = gains(step)
        factor = f"{times_text(low)} to {times_text(high)} times"
        said.append(f"{name}: {factor}, {around:.0f}% of the step stays on the CPU")
    ticks = [-3 * number - below for number in range(len(steps)) for below in (0, 1)]
    axes.set(yticks=ticks, yticklabels=names)
    axes.axvline(100, color=MUTED, linestyle=":")
    axes.legend(
        handles=[
            Patch(color=AMBER, label="stays on the CPU"),
            Patch(color=CPU, label="network, measured"),
            Patch(color=GPU, label="network, least (estimated)"),
            Patch(facecolor="none", edgecolor=GPU, hatch="//", label="network, most (estimated)"),
        ],
        loc="upper center",
        bbox_to_anchor=(0.4, -0.15),
        ncols=2,
        frameon=False,
    )
    return picture(axes, f"How many times as fast a step is with a {gpu}. {'; '.join(said)}.")


def gains(step: tuple[float, float, float, float]) -> tuple[float, float]:
    """Return how many times as fast a step is with a GPU, at the slow and at the fast end."""
    whole, around, least, most = step
    return whole / (around + most), whole / (around + least)


def times_text(times: float) -> str:
    """Return a factor to about two digits: "0.94", "1.0", "17"."""
    if times >= 10:
        return f"{times:,.0f}"
    return f"{times:.1f}" if times >= 1 else f"{times:.2f}"
