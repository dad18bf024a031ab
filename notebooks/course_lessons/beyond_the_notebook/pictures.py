"""The picture of the lesson beyond the notebook."""

from course_lessons.diagrams import DARK, draw_arrow, draw_box, draw_canvas
from course_tools.figures import BLUE, ORANGE, Picture, picture

# By what a rank starts from. Each way: its name, and what comes of it.
WAYS = {
    "this notebook's\nkernel": ({"fork": "a copy of it,\nwith all its memory"}, ORANGE),
    "a file": (
        {
            "spawn": "a new Python\nthat imports the file",
            "torchrun": "a new Python\nthat runs the file",
        },
        BLUE,
    ),
}


def draw_starts() -> Picture:
    """Draw what a rank can start from, in which ways, and what each of them gives."""
    axes = draw_canvas("A notebook is copied, a file starts anew")
    y, words = 6.4, []
    for source, (ways, color) in WAYS.items():
        middle = y - 1.5 * (len(ways) - 1)
        draw_box(axes, 0.1, middle, 3.7, source, color)
        for way, rank in ways.items():
            draw_box(axes, 7.6, y, 5.1, rank, color)
            draw_arrow(axes, (3.9, middle + 1), (7.5, y + 1))
            x, height = 5.7, (middle + y) / 2 + 1
            box = {"facecolor": "white", "edgecolor": "none", "pad": 3}
            axes.text(x, height, way, ha="center", va="center", fontweight="bold", bbox=box)
            words.append(f"{way}: {source} becomes {rank}".replace("\n", " "))
            y -= 3.0
    axes.text(0.1, 0.1, "Fork only works if no cell has used a GPU.", color=DARK)
    return picture(axes, f"How a rank starts. {'; '.join(words)}.", colors=16)
