"""The picture of what fills the memory over one step."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from course_utils.display.figures import Picture  # figures need matplotlib, which is imported to draw one

BANDS = ("#0072B2", "#D55E00", "#CC79A7", "#F0E442")  # Okabe and Ito


def memory_chart(amounts: Mapping[str, Sequence[float]], phases: Mapping[str, int], title: str) -> "Picture":
    """Draw what fills the memory over one step, stacked, and mark the peak.

    Args:
        amounts: bytes after each operation, by what fills them, from the bottom up.
        phases: the number of the operation with which each phase begins.
        title: what the picture shows.
    """
    import numpy as np

    from course_utils.display.figures import lecture_axes, picture

    axes = lecture_axes(title, "operations of one step, in their order", "GB in use")
    bands = np.array(list(amounts.values()), dtype=float) / 1e9
    axes.stackplot(range(bands.shape[1]), bands, colors=BANDS[: len(bands)], labels=list(amounts))
    total = bands.sum(axis=0)
    peak = int(total.argmax())
    axes.plot(peak, total[peak], "kv", markersize=16)
    for phase, start in phases.items():
        axes.axvline(start, color="black", linestyle=":", linewidth=2)
        late = start > 0.85 * bands.shape[1]
        side = "right" if late else "left"
        axes.annotate(phase, (start, 1), (-6 if late else 6, -22), ("data", "axes fraction"), "offset points", ha=side)
    axes.set(xlim=(0, bands.shape[1] - 1), ylim=(0, 1.3 * total[peak]))
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, 0.95), ncols=len(bands), frameon=False)
    said = ", ".join(f"{name} {band[peak]:.3g} GB" for name, band in zip(amounts, bands, strict=True))
    return picture(axes, f"What fills the memory over one step; at the peak {said}.")
