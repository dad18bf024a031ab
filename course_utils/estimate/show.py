"""The picture of what fills the memory over one step."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from course_utils.estimate.memory_step import KINDS, Moment

if TYPE_CHECKING:
    from course_utils.display.figures import Picture  # figures need matplotlib, which is imported to draw one

BANDS = ("#0072B2", "#D55E00", "#CC79A7", "#F0E442")  # Okabe and Ito


def memory_chart(moments: Sequence[Moment], title: str) -> "Picture":
    """Draw what fills the memory over one step, stacked from the bottom up, with its phases, and mark the peak."""
    import numpy as np

    from course_utils.display.figures import lecture_axes, picture

    axes = lecture_axes(title, "operations of one step, in their order", "GB in use")
    bands = np.array([[getattr(moment, kind) for moment in moments] for kind in KINDS], dtype=float) / 1e9
    axes.stackplot(range(len(moments)), bands, colors=BANDS, labels=KINDS)
    total = bands.sum(axis=0)
    peak = int(total.argmax())
    axes.plot(peak, total[peak], "kv", markersize=16)
    phases = [moment.phase for moment in moments]
    for phase in dict.fromkeys(phases):
        start = phases.index(phase)
        axes.axvline(start, color="black", linestyle=":", linewidth=2)
        late = start > 0.85 * len(moments)
        side = "right" if late else "left"
        axes.annotate(phase, (start, 1), (-6 if late else 6, -22), ("data", "axes fraction"), "offset points", ha=side)
    axes.set(xlim=(0, len(moments) - 1), ylim=(0, 1.3 * total[peak]))
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, 0.95), ncols=len(KINDS), frameon=False)
    said = ", ".join(f"{name} {band[peak]:.3g} GB" for name, band in zip(KINDS, bands, strict=True))
    return picture(axes, f"What fills the memory over one step; at the peak {said}.")
