"""Figures for a lecture hall: large text, colours that everyone can tell apart, and alt text."""

import base64
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from course_utils.missing_packages import explain_missing_package
from course_utils.tables import clean

with explain_missing_package():
    import matplotlib.pyplot as plt
    from matplotlib.axes import Axes
    from matplotlib.text import Text
    from PIL import Image

# Source: M. Okabe and K. Ito, Color Universal Design (2008).
BLUE, ORANGE, GREEN = "#0072B2", "#D55E00", "#009E73"
SKY, PINK, AMBER, YELLOW = "#56B4E9", "#CC79A7", "#E69F00", "#F0E442"  # mean no kind of device
MUTED = "#595959"  # for what is not the message of a picture
# A colour for each kind of device, with a marker and a line style, so that it reads in grey too.
LOOKS = {
    "cpu": {"color": BLUE, "marker": "o", "linestyle": "-"},
    "cuda": {"color": ORANGE, "marker": "s", "linestyle": "--"},
    "xla": {"color": GREEN, "marker": "^", "linestyle": "-."},
}
STYLE: dict[str, Any] = {
    "figure.figsize": (12.8, 7.2),
    "figure.dpi": 100,
    "font.size": 20,
    "axes.titlesize": 26,
    "axes.titlelocation": "left",
    "axes.titlepad": 18,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "lines.linewidth": 3,
}


@dataclass(frozen=True)
class Picture:
    """A figure as a notebook shows it: an opaque PNG with an alternative text."""

    png: bytes
    alt: str

    def __repr__(self) -> str:
        return self.alt

    def _repr_mimebundle_(
        self, include: object = None, exclude: object = None
    ) -> tuple[dict, dict]:
        data = {"image/png": base64.b64encode(self.png).decode(), "text/plain": self.alt}
        return data, {"image/png": {"alt": self.alt}}


def lecture_axes(title: str, xlabel: str = "", ylabel: str = "") -> Axes:
    """Return the axes of a new figure of 12.8 x 7.2 inches that is readable from the last row.

    Raises:
        ValueError: the title is longer than 45 characters.
    """
    if len(title) > 45:
        raise ValueError(
            f"a title has 45 characters at most to be read from afar, "
            f"but {title!r} has {len(title)}."
        )
    with plt.style.context(["default", STYLE]):  # white, also under a dark style
        _, axes = plt.subplots(layout="constrained")
        axes.set(title=title, xlabel=xlabel, ylabel=ylabel)
        axes.tick_params(labelsize=20, colors="black")
    return axes


def picture(axes: Axes, alt: str, *, colors: int = 64) -> Picture:
    """Finish the figure of `axes`, with text and lines large enough for a hall, and return it.

    Args:
        axes: from `lecture_axes`.
        alt: what the figure shows, in words, for readers who cannot see it: at least a sentence.
        colors: how many the file may hold; fewer make it smaller.

    Raises:
        ValueError: the alternative text is missing.
    """
    if len(alt.split()) < 4:
        raise ValueError(f"a picture needs a sentence that says what it shows, but got {alt!r}.")
    figure: Any = axes.figure
    for text in figure.findobj(Text):
        text.set_fontsize(max(text.get_fontsize(), STYLE["font.size"]))
        if text.get_color() == plt.rcParams["text.color"]:
            text.set_color("black")  # on our white ground, whatever a dark style says
    for line in axes.lines:
        line.set_linewidth(max(line.get_linewidth(), STYLE["lines.linewidth"]))
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", facecolor="white")
    plt.close(figure)
    # 64 colours are plenty for lines and text, and make the file a third of the size.
    small = Image.open(buffer).convert("RGB").quantize(colors, dither=Image.Dither.NONE)
    buffer = io.BytesIO()
    small.save(buffer, format="png", optimize=True)
    return Picture(buffer.getvalue(), alt)


def label_ends(axes: Axes, ends: Sequence[tuple[float, float, str, str]]) -> None:
    """Write the names of lines at their ends (x, y, name, colour), moved apart where lines end
    close together.

    The axes need their final scales.
    """
    axes.figure.canvas.draw()
    heights = [(axes.transData.transform(end[:2])[1], end) for end in ends]
    free = -math.inf
    for height, (x, y, name, color) in sorted(heights):
        free = max(height, free + 34)
        offset = (14, (free - height) * 72 / axes.figure.dpi)
        look: Any = {"color": color, "va": "center", "annotation_clip": False}
        axes.annotate(label_text(name), (x, y), offset, textcoords="offset points", **look)


def note_doubts(axes: Axes, figures: Sequence[Any]) -> None:
    """Mark in a corner of a picture how many of its figures are unreliable, if there are any."""
    doubts = sum(bool(one.warnings) for one in figures)
    if doubts:
        words = f"{doubts} of {len(figures)} points unreliable (x)"
        axes.annotate(words, (0.01, 1.0), xycoords="axes fraction", va="top", color=MUTED)


def label_text(label: str, most: int = 36) -> str:
    """Return a text of at most `most` characters that matplotlib draws as it stands."""
    return clean(label, most).replace("$", r"\$")  # a dollar sign would start a formula
