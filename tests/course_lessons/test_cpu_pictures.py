"""The pictures of lesson 1: what their titles and words say is what they were given."""

from course_lessons.cpu.pictures import BATCHES, draw_batches, draw_series, time_batches
from course_lessons.data.series import air_passengers


def test_the_title_names_the_largest_batch_that_costs_hardly_more_and_says_how_much_more():
    times_s = dict(zip(BATCHES, (1e-3, 1.1e-3, 1.2e-3, 1.6e-3, 4e-3, 16e-3, 64e-3), strict=True))
    alt = draw_batches(times_s).alt
    assert alt.startswith("16 windows take 1.2 times as long as 1: a step takes 1 ms for 1 window")
    assert "64 ms for 4,096" in alt


def test_every_batch_is_measured(monkeypatch):
    monkeypatch.setattr("course_lessons.cpu.pictures.BATCHES", (1, 100))
    times_s = time_batches()
    assert list(times_s) == [1, 100] and min(times_s.values()) > 0


def test_a_series_says_what_is_kept_aside_and_what_is_forecast():
    train, later = air_passengers()
    assert "the last 23 months are dashed" in draw_series(train, later, "A series").alt
    assert "dots of the forecast" in draw_series(train, later, "A forecast", later).alt
