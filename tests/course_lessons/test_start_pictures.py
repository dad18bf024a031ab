"""The pictures of lesson 0: what their words, bars and titles say is what they were given."""

import matplotlib.pyplot as plt
from course_lessons.start.pictures import (
    draw_own_times,
    draw_published_times,
    draw_times,
    published_conditions,
)


def test_the_times_are_written_with_a_unit_that_fits():
    alt = draw_times(
        {"a CPU": 5400.0, "a card,\npublished": 7.5}, "Hours against seconds", "here"
    ).alt
    assert "a CPU 1.5 h" in alt and "a card, published 7.5 s" in alt


def test_a_cpu_has_another_colour_than_a_card(monkeypatch):
    monkeypatch.setattr(plt, "close", lambda *_: None)
    draw_times({"a CPU": 2.0, "a card": 1.0}, "Two bars", "here")
    cpu, card = plt.gcf().axes[0].patches
    assert cpu.get_facecolor() != card.get_facecolor()


def test_the_opening_picture_says_what_was_published():
    alt = draw_published_times().alt
    assert alt.startswith("50,000 photographs: half an hour or 8 seconds")
    # 50,000 photographs at 30.48, 402.3, 1,120.4 and 6,356.02 images/s, as in the two repositories
    for part in ("12700H 27.3 min", "32 bits 2.07 min", "16 bits 44.6 s", "16 bits 7.87 s"):
        assert part in alt
    assert list(published_conditions()["batch"]) == [1, 16, 128, 1024]


def test_the_title_of_ones_own_times_is_the_gain_where_there_is_an_accelerator():
    assert "40 times as fast as your CPU" in draw_own_times({"this CPU": 10, "T4": 400}).alt
    alone = draw_own_times({"this CPU": 10}).alt
    assert "Your CPU takes 1.39 h for this job" in alone and "this CPU, measured 1.39 h" in alone
