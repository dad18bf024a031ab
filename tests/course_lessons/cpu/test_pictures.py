"""The pictures of lesson 1: what their titles and words say is what they were given."""

import torch
from course_lessons.cpu.pictures import BATCHES, draw_batches, draw_forecast
from course_lessons.data.models import AirRNN
from course_lessons.data.series import air_passengers


def test_the_title_names_the_largest_batch_that_costs_hardly_more_and_says_how_much_more():
    times_s = dict(zip(BATCHES, (1e-3, 1.1e-3, 1.2e-3, 1.6e-3, 4e-3, 16e-3, 64e-3), strict=True))
    alt = draw_batches(times_s).alt
    assert alt.startswith("16 windows take 1.2 times as long as 1: a step takes 1 ms for 1 window")
    assert "64 ms for 4,096" in alt
    growing = {batch: batch**0.34 / 1e3 for batch in BATCHES}
    assert draw_batches(growing).alt.startswith("4 windows take 1.6 times as long as 1: ")


def test_a_forecast_says_how_far_off_it_is(monkeypatch):
    train, later = air_passengers()
    growth = train[12:] / train[:-12]
    low, high = growth.min(), growth.max()
    as_it_came = torch.cat([train, later])
    truth = (as_it_came[12:] / as_it_came[:-12])[-len(later) :]
    perfect = AirRNN()
    monkeypatch.setattr(perfect, "forecast", lambda *_, steps: (truth - low) / (high - low))
    assert "off by 0.0% on average" in draw_forecast(perfect).alt
    last_year = AirRNN()
    monkeypatch.setattr(
        last_year, "forecast", lambda *_, steps: (1 + 0 * truth - low) / (high - low)
    )
    repeated = train[-12:].repeat(2)[:23]
    error = ((repeated - later).abs() / later).mean()
    assert f"off by {error:.1%} on average" in draw_forecast(last_year).alt
