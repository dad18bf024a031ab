import io

import numpy as np
import pytest
from PIL import Image

from course_tools.timeline.drawing import draw_runs, in_words
from course_tools.timeline.lanes import Lane, Span


def spans(*times):
    return tuple(Span("work", float(start), float(end)) for start, end in times)


LANES = (
    Lane("host", "host", spans((0, 1)), (Span("launch", 0, 1), Span("wait", 1, 4)), spans((1, 4))),
    Lane("device", "device", spans((1, 3))),
)


def test_the_words_say_what_is_busy_and_what_waits():
    said = in_words(LANES, 4.0)
    assert said.startswith("A timeline of 4 s. host (launch, wait): busy for 25%, waiting for 75%")
    assert said.endswith("; device: busy for 50%.")


def test_a_busy_stretch_is_drawn_where_it_was():
    shown = draw_runs({"a run": LANES}, "A title")
    pixels = np.asarray(Image.open(io.BytesIO(shown.png)).convert("RGB"), dtype=int)
    assert pixels.shape == (720, 1280, 3)
    orange = np.argwhere((abs(pixels - (0xD5, 0x5E, 0x00)) < 12).all(axis=2))  # the device's lane
    blue = np.argwhere((abs(pixels - (0x00, 0x72, 0xB2)) < 12).all(axis=2))
    width = blue[:, 1].max() - blue[:, 1].min()
    # the device begins where the host ends,
    assert orange[:, 1].min() == pytest.approx(blue[:, 1].max(), abs=8)
    # and works twice as long
    assert orange[:, 1].max() - orange[:, 1].min() == pytest.approx(2 * width, rel=0.05)
    assert orange[:, 0].min() > blue[:, 0].max()  # in a lane below


def test_a_name_with_dollars_is_no_formula():
    block = Lane("$\\thread{$", "host", (), named=(Span("$\\bad{$", 0.0, 4.0),))
    assert draw_runs({"$\\bad{$": (block,)}, "A title").png


def test_of_many_lanes_those_are_drawn_that_were_used_most_and_the_others_are_counted():
    lanes = [Lane(f"thread {number}", "host", spans((0, number + 1))) for number in range(5000)]
    said = draw_runs({"a run": lanes}, "A title").alt
    assert "thread 4999: busy" in said and "thread 4987:" not in said
    assert said.endswith("; 4,988 more lanes.")


def test_of_many_spans_what_is_closer_than_a_pixel_is_drawn_as_one():
    crowd = Lane("GPU", "device", spans(*((place, place + 0.5) for place in range(200_000))))
    shown = draw_runs({"a run": (crowd,)}, "A title")  # one by one, this would take a minute
    assert "GPU: busy for 50%" in shown.alt
