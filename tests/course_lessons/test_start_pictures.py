"""The pictures of lesson 0: what their words, bars and titles say is what they were given."""

import matplotlib.pyplot as plt
from course_lessons.start.pictures import (
    draw_own_times,
    draw_published_times,
    draw_times,
    published_conditions,
)

from course_utils.timing import Timing


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
    # 50,000 photographs at 30.48, 98, 409, 1,190 and 6,356.02 images/s: the rates that the two
    # repositories print
    for part in ("one at a time 27.3 min", "one at a time 8.5 min", "16 at a time 2.04 min"):
        assert part in alt
    assert "128 at a time, 16-bit numbers 42 s" in alt and "16-bit numbers 7.87 s" in alt
    conditions = published_conditions()
    assert list(conditions["batch"]) == [1, 1, 16, 128, 1024]
    assert list(conditions["images/s"])[:4] == ["30.5", "98", "409", "1190"]


def timing(images_per_s: float, *warnings: str) -> Timing:
    return Timing("cpu", 1, 1.0, (16 / images_per_s,) * 20, 1, warnings=warnings)


def test_the_title_of_ones_own_times_is_the_gain_if_there_is_an_accelerator():
    both = draw_own_times({"this CPU": timing(10), "T4": timing(400)}, 16).alt
    assert "40 times as fast as your CPU" in both
    alone = draw_own_times({"this CPU": timing(10)}, 16).alt
    assert "Your CPU takes 1.39 h for this job" in alone and "this CPU, measured 1.39 h" in alone
    assert "busy" not in alone


def test_a_time_that_was_disturbed_is_hatched_and_says_run_again(monkeypatch):
    monkeypatch.setattr(plt, "close", lambda *_: None)
    timings = {"this CPU": timing(10, "the core was shared"), "T4": timing(400)}
    alt = draw_own_times(timings, 16).alt
    assert "this CPU, measured 1.39 h busy machine: run again, T4, measured" in alt
    cpu, card, published = plt.gcf().axes[0].patches
    assert cpu.get_hatch() and not card.get_hatch() and not published.get_hatch()
