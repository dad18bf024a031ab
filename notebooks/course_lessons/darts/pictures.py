"""The picture of lesson 10: how many times as fast as this CPU a GPU trains each forecaster."""

from dataclasses import dataclass

from matplotlib.ticker import FuncFormatter

from course_tools.figures import LOOKS, MUTED, Picture, lecture_axes, picture

FACTOR = 3  # by which an estimate may be off: no such estimate was checked on these networks
CLEAR = {"facecolor": "white", "edgecolor": "none", "pad": 2}  # behind text that meets a line
CPU, GPU = LOOKS["cpu"]["color"], LOOKS["cuda"]["color"]


@dataclass(frozen=True)
class Gain:
    """A forecaster's windows per second here and on a GPU.

    Attributes:
        name: of the forecaster, with its batch.
        here: windows per second on this CPU, measured.
        there: windows per second on the GPU.
        published: whether `there` was published; otherwise it is estimated.
    """

    name: str
    here: float
    there: float
    published: bool = False

    @property
    def times(self) -> float:
        """How many times as fast the GPU is."""
        return self.there / self.here


def draw_gains(gains: list[Gain], gpu: str) -> Picture:
    """Draw how many times as fast as this CPU a GPU is, a row for each forecaster."""
    axes = lecture_axes(
        f"An {gpu} pays for some forecasters", "times as fast as this CPU (logarithmic)"
    )
    rows = range(len(gains), 0, -1)
    for row, gain in zip(rows, gains, strict=True):
        if not gain.published:
            ends = [gain.times / FACTOR, gain.times * FACTOR]
            axes.plot(ends, [row, row], color=GPU, alpha=0.4, linewidth=14, solid_capstyle="butt")
        axes.plot(gain.times, row, color=GPU, marker="D" if gain.published else "s", markersize=16)
        source = "published" if gain.published else "estimated"
        note = f"{times_text(gain.times)}, {source}"
        axes.annotate(
            note, (gain.times, row), (0, 20), textcoords="offset points", ha="center", bbox=CLEAR
        )
    axes.axvline(1, color=CPU, linestyle=":", zorder=0)
    axes.annotate("as fast", (1, 0.45), (8, 0), textcoords="offset points", color=MUTED)
    axes.set_xscale("log")
    axes.set(ylim=(0.4, len(gains) + 0.7), yticks=list(rows))
    axes.set_yticklabels([gain.name for gain in gains])
    low = min(1, *(gain.times for gain in gains)) / 6
    high = max(gain.times for gain in gains) * 6
    axes.set_xlim(low, high)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    said = "; ".join(f"{gain.name}: {times_text(gain.times)}".replace("\n", " ") for gain in gains)
    return picture(axes, f"How many times as fast as this CPU an {gpu} trains. {said}.", colors=32)


def times_text(times: float) -> str:
    """Return a factor with about two digits, such as "0.25 times" or "480 times"."""
    if times < 1:
        return f"{times:.2f} times"
    if times < 10:
        return f"{times:.1f} times"
    digits = 0 if times < 100 else -1
    return f"{round(times, digits):,.0f} times"
