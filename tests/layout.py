"""What can be read in a picture: words inside of it and beside each other, boxes in order."""

import itertools

from matplotlib.colors import to_hex, to_rgba
from matplotlib.figure import Figure
from matplotlib.text import Text

LEAST = 2  # pixels: what shares less than this only touches


def words_of(figure: Figure) -> list[Text]:
    """Return the words that are seen, also those at the ticks that lie on an axis."""
    hidden = []
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            low, high = sorted(axis.get_view_interval())
            for tick in (*axis.get_major_ticks(), *axis.get_minor_ticks()):
                if not axes.axison or not low <= tick.get_loc() <= high:
                    hidden += [tick.label1, tick.label2]
    shown = [text for text in figure.findobj(Text) if text.get_text().strip()]
    return [text for text in shown if text.get_visible() and text not in hidden]


def shared(one, other) -> float:
    """Return the pixels that two boxes share, 0 where they only touch."""
    width = min(one.x1, other.x1) - max(one.x0, other.x0)
    height = min(one.y1, other.y1) - max(one.y0, other.y0)
    return width * height if min(width, height) > LEAST else 0.0


def is_empty(patch) -> bool:
    return to_rgba(patch.get_facecolor())[3] == 0 or to_hex(patch.get_facecolor()) == "#ffffff"


def check_arrows(axes) -> None:
    """Fail if an arrow begins away from every box, or ends inside of one."""
    boxes = [patch.get_window_extent() for patch in axes.patches]
    near, deep = (abs(part * axes.bbox.width) for part in (0.02, 0.005))
    for arrow in axes.texts if boxes else ():
        if getattr(arrow, "arrow_patch", None) is None:
            continue
        start, end = axes.transData.transform((arrow.xyann, arrow.xy))
        assert any(box.padded(near).contains(*start) for box in boxes), "an arrow from nowhere"
        for point in (start, end):
            assert not any(box.padded(-deep).contains(*point) for box in boxes if box.width > near)


def check_layout(figure: Figure) -> None:
    """Fail if words leave the picture or cover each other, or if a full box covers another."""
    figure.canvas.draw()
    places = [(text.get_text(), text.get_window_extent()) for text in words_of(figure)]
    for words, box in places:
        inside = box.x0 > -LEAST and box.y0 > -LEAST
        inside = inside and box.x1 < figure.bbox.x1 + LEAST and box.y1 < figure.bbox.y1 + LEAST
        assert inside, f"{words!r} leaves the picture"
    for (one, its), (other, others) in itertools.combinations(places, 2):
        assert not shared(its, others), f"{one!r} covers {other!r}"
    for axes in figure.axes:
        check_arrows(axes)
        boxes = [(patch, patch.get_window_extent()) for patch in axes.patches]
        for (below, first), (above, second) in itertools.combinations(boxes, 2):
            both = shared(first, second)
            within = both > 0.98 * second.width * second.height and is_empty(below)
            assert not both or within, f"{above} covers {below}"
