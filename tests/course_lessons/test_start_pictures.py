"""The pictures of lessons 0 and 1: what their words and bars say is what they were given."""

import matplotlib.pyplot as plt
from course_lessons.cpu import draw_series, draw_stack
from course_lessons.start.pictures import draw_times

from course_utils.data import air_passengers


def test_the_times_are_written_with_a_unit_that_fits():
    alt = draw_times({"a CPU": 5400.0, "a card,\npublished": 7.5}, "Hours against seconds").alt
    assert "a CPU 1.5 h" in alt and "a card, published 7.5 s" in alt


def test_a_cpu_has_another_colour_than_a_card(monkeypatch):
    monkeypatch.setattr(plt, "close", lambda *_: None)
    draw_times({"a CPU": 2.0, "a card": 1.0}, "Two bars")
    cpu, card = plt.gcf().axes[0].patches
    assert cpu.get_facecolor() != card.get_facecolor()


def test_a_bar_begins_where_the_bar_before_it_ends(monkeypatch):
    monkeypatch.setattr(plt, "close", lambda *_: None)
    picture = draw_stack(
        ["first", "second", "third"], [[1.0, 1.1, 0.9], [3.0, 2.0, 4.0], [9.0, 5.0, 7.0]], "here"
    )
    bars = [(bar.get_x(), bar.get_width()) for bar in plt.gcf().axes[0].patches]
    assert bars == [(0.0, 1.0), (1.0, 2.0), (3.0, 4.0)]  # up to the medians 1, 3 and 7
    assert "third, to 7.00" in picture.alt and "here" in picture.alt


def test_the_series_says_whether_there_is_a_forecast():
    train, later = air_passengers()
    without, with_one = (
        draw_series(train, later, "Months"),
        draw_series(train, later, "Months", later),
    )
    assert (
        "last 23 months" in without.alt
        and "forecast" not in without.alt
        and "forecast" in with_one.alt
    )
    assert without.png != with_one.png
