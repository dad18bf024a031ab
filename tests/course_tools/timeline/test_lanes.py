from hypothesis import given
from hypothesis import strategies as st

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
    assert lane.end_s == max((end for _, end in some), default=0)
    between = {tick - 7 for tick in ticks(some) if 7 <= tick < 30}
    assert ticks(times(lane.between(7, 30).work)) == between


def test_spans_that_touch_are_one_and_the_order_of_the_input_is_of_no_importance():
    assert times(union(spans((4, 6), (0, 2), (2, 3), (5, 5.5)))) == [(0, 3), (4, 6)]


def test_nothing_of_no_length_is_left_where_spans_and_holes_touch():
    lane = Lane("host", "host", spans((0, 1), (2, 3)), named=spans((0, 4)))
    assert times(lane.between(1, 2).work) == [] and lane.end_s == 4
    assert times(without(spans((0, 4)), spans((0, 1), (3, 4)))) == [(1, 3)]


def test_what_lies_in_another_span_is_left_out():
    assert times(outermost(spans((1, 2), (0, 5), (3, 5), (6, 8), (6, 7)))) == [(0, 5), (6, 8)]


def test_many_waits_are_cut_out_in_the_time_of_one_pass():
    calls = [Span("call", 2.0 * place, 2.0 * place + 1.5) for place in range(50_000)]
    waits = [Span("wait", 2.0 * place + 0.5, 2.0 * place + 1.0) for place in range(50_000)]
    assert len(without(calls, waits)) == 100_000  # quadratic, this would take hours
