import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from course_tools.timeline.drawing import draw_runs, in_words
from course_tools.timeline.lanes import Lane, Span, outermost, union, without


def spans(*times):
    return tuple(Span("work", float(start), float(end)) for start, end in times)


def times(found):
    return [(span.start_s, span.end_s) for span in found]


SOME = st.lists(
    st.tuples(st.integers(0, 40), st.integers(1, 9)).map(lambda t: (t[0], t[0] + t[1])), max_size=12
)


def ticks(pairs):
    return {tick for start, end in pairs for tick in range(int(start), int(end))}


@given(SOME, SOME)
def test_union_and_cuts_agree_with_counting_ticks(some, holes):
    lane = Lane("host", "host", spans(*some))
    assert lane.busy_s == len(ticks(some))
    assert ticks(times(without(spans(*some), spans(*holes)))) == ticks(some) - ticks(holes)


def test_spans_that_touch_are_one_and_the_order_of_the_input_is_of_no_importance():
    assert times(union(spans((4, 6), (0, 2), (2, 3), (5, 5.5)))) == [(0, 3), (4, 6)]


def test_what_lies_in_another_span_is_left_out():
    assert times(outermost(spans((1, 2), (0, 5), (3, 5), (6, 8), (6, 7)))) == [(0, 5), (6, 8)]


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
