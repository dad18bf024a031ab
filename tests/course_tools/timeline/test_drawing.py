import pytest

from course_tools.timeline.drawing import draw_runs, in_words
from course_tools.timeline.lanes import Lane, Span
from course_tools.timeline.timeline import Timeline


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


def test_each_lane_of_each_run_is_a_row_with_its_share_of_the_run_and_its_bars_in_seconds(drawn):
    noted = Timeline.of_spans({"loading": [("load", 7, 8), ("load", 8.5, 9)]})
    draw_runs({"a run": LANES, "another": noted.lanes}, "A title")
    (axes,) = drawn
    labels = [label.get_text() for label in axes.get_yticklabels()]
    # what a profiler saw of the host is not all that it did; what a program has noted is
    assert labels == ["host\n25% recorded", "device\n50% busy", "loading\n75% of the time"]
    rows = axes.get_yticks()
    assert list(rows) == sorted(rows, reverse=True)
    assert axes.get_xlim() == (0, 4) and axes.get_xlabel() == "s"
    bars = [path.get_extents() for group in axes.collections for path in group.get_paths()]
    spans_of = [
        [(box.x0, box.x1) for box in bars if abs((box.y0 + box.y1) / 2 - row) < 0.5] for row in rows
    ]
    # the host's names, its work, and its waits; then the device's work; then names and work
    loads = [(0, 1), (1.5, 2)]
    assert spans_of == [[(0, 1), (1, 4), (0, 1), (1, 4)], [(1, 3)], loads * 2]
    words = {text.get_text(): text.get_position()[0] for text in axes.texts}
    assert words["launch"] == 0.5 and words["wait"] == 2.5
    assert "a run: 4 s" in words and "another: 2 s" in words


@pytest.mark.parametrize(("end_s", "unit"), [(2.0, "s"), (1.9, "ms"), (2e-3, "ms"), (1.9e-3, "µs")])
def test_the_axis_has_the_largest_unit_that_its_length_holds_twice(end_s, unit, drawn):
    draw_runs({"a run": (Lane("device", "device", spans((0, end_s))),)}, "A title")
    assert drawn[0].get_xlabel() == unit


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
