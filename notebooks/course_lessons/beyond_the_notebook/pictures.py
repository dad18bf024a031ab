"""The picture of the lesson beyond the notebook."""

from course_lessons.boxes import draw_arrow, draw_box, draw_canvas
from course_tools.figures import BLUE, GREEN, MUTED, ORANGE, Picture, picture

WAYS = (
    ("fork", "this kernel,\nwith its memory", "a copy of it all", ORANGE),
    ("spawn", "a file", "a new Python\nthat imports the file", BLUE),
    ("torchrun", "a file", "a new Python\nthat runs the file", GREEN),
)


def draw_starts() -> Picture:
    """Draw the three ways in which a rank can start."""
    axes = draw_canvas("Two of three ways to start a rank need a file")
    words = []
    for row, (name, source, rank, color) in enumerate(WAYS):
        y = 6.6 - 3.1 * row
        draw_box(axes, 0.2, y, 3.9, source, MUTED)
        draw_box(axes, 8.3, y, 4.3, rank, color)
        draw_arrow(axes, (4.2, y + 1), (8.2, y + 1))
        axes.text(6.2, y + 1.3, name, ha="center", fontweight="bold")
        words.append(f"{name}: {source} becomes {rank}".replace("\n", " "))
    return picture(axes, f"How a rank starts. {'; '.join(words)}.", colors=16)
