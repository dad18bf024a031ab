import io
from types import SimpleNamespace

import matplotlib.pyplot as plt
import pytest
from PIL import Image

from course_tools.figures import LOOKS, label_ends, lecture_axes, note_doubts, picture


def test_small_text_and_thin_lines_are_made_readable_from_the_last_row():
    axes = lecture_axes("A title", "x", "y")
    (line,) = axes.plot([0, 1], linewidth=0.5)
    text, large = axes.text(0, 0, "small", fontsize=8), axes.text(0, 1, "large", fontsize=40)
    shown = picture(axes, "A line that goes up.")
    assert (line.get_linewidth(), text.get_fontsize(), large.get_fontsize()) == (3, 20, 40)
    image = Image.open(io.BytesIO(shown.png))
    assert image.size == (1280, 720)
    # opaque, also in a dark theme
    assert image.convert("RGBA").getpixel((0, 0)) == (255, 255, 255, 255)


def test_a_picture_carries_its_words():
    shown = picture(lecture_axes("A title"), "Nothing but empty axes.")
    data, metadata = shown._repr_mimebundle_()
    assert (
        repr(shown)
        == data["text/plain"]
        == metadata["image/png"]["alt"]
        == "Nothing but empty axes."
    )


def test_a_title_too_long_to_read_is_refused():
    with pytest.raises(
        ValueError, match=r"45 characters at most to be read from afar, but .* has 46"
    ):
        lecture_axes("x" * 46)
    assert lecture_axes("x" * 45).get_title("left") == "x" * 45


def test_a_picture_without_words_is_refused():
    with pytest.raises(
        ValueError, match="a sentence that says what it shows, but got 'not four words'"
    ):
        picture(lecture_axes("A title"), "not four words")
    assert picture(lecture_axes("A title"), "there are four words").png


def test_names_at_the_ends_of_lines_stand_apart_in_the_order_of_the_ends():
    axes = lecture_axes("A title")
    axes.set(xlim=(0, 1), ylim=(0, 1))
    label_ends(axes, [(1, 0.9, "high", "k"), (1, 0.52, "second", "k"), (1, 0.5, "first", "k")])
    heights = {}
    for text in axes.texts:
        end = axes.transData.transform(text.xy)[1]
        heights[text.get_text()] = end + text.xyann[1] * axes.figure.dpi / 72
    ends = {
        name: axes.transData.transform((1, y))[1] for name, y in (("first", 0.5), ("high", 0.9))
    }
    assert heights["second"] == pytest.approx(heights["first"] + 34)
    assert {name: heights[name] for name in ends} == pytest.approx(ends)


def test_the_corner_of_a_picture_counts_its_unreliable_figures_if_there_are_any():
    good, bad = SimpleNamespace(warnings=()), SimpleNamespace(warnings=("busy", "hot"))
    axes = lecture_axes("A title")
    note_doubts(axes, [good, good])
    assert not axes.texts
    note_doubts(axes, [good, bad, good])
    assert [text.get_text() for text in axes.texts] == ["1 of 3 points unreliable (x)"]


def test_a_dark_style_of_the_notebook_changes_no_picture():
    def draw():
        axes = lecture_axes("A line that rises", "x", "y")
        axes.plot([1, 2], [1, 4], color=LOOKS["cpu"]["color"])
        axes.text(1, 3, "a word")
        return picture(axes, "A line rises from one to four.").png

    white = draw()
    with plt.style.context("dark_background"):
        assert draw() == white
