"""The pictures of lesson 1: what their titles and words say is what they were given."""

import pytest
import torch
from course_lessons.cpu.pictures import (
    BATCHES,
    air_windows,
    draw_batches,
    draw_forecast,
    draw_images,
)
from course_lessons.data.images import offline_images
from course_lessons.data.models import AirRNN
from course_lessons.data.series import air_passengers


def test_the_title_names_the_largest_batch_that_costs_hardly_more_and_says_how_much_more(drawn):
    times_s = dict(zip(BATCHES, (1e-3, 1.1e-3, 1.2e-3, 1.6e-3, 4e-3, 16e-3, 64e-3), strict=True))
    alt = draw_batches(times_s).alt
    assert alt.startswith("16 windows take 1.2 times as long as 1: a step takes 1 ms for 1 window")
    assert "64 ms for 4,096" in alt
    (line,) = drawn[0].lines
    assert list(line.get_xdata()) == list(BATCHES) == list(drawn[0].get_xticks())
    assert list(line.get_ydata()) == [1, 1.1, 1.2, 1.6, 4, 16, 64]  # in ms, as its axis says
    below, above = drawn[0].get_ylim()
    assert below < 1 and above > 64
    growing = {batch: batch**0.34 / 1e3 for batch in BATCHES}
    assert draw_batches(growing).alt.startswith("4 windows take 1.6 times as long as 1: ")


def test_the_windows_are_those_of_the_growth_over_the_year_before():
    inputs, targets = air_windows()
    train = air_passengers()[0]
    assert inputs.shape == targets.shape == (89, 20, 1) and len(train) == 121
    assert torch.equal(inputs[1:], targets[:-1]) and inputs.min() >= 0 and inputs.max() <= 1
    growth = train[12:] / train[:-12]
    scaled = (growth - growth.min()) / (growth.max() - growth.min())
    torch.testing.assert_close(inputs[0, :, 0], scaled[:20])


def test_a_forecast_says_how_far_off_it_is(monkeypatch, drawn):
    train, later = air_passengers()
    growth = train[12:] / train[:-12]
    low, high = growth.min(), growth.max()
    as_it_came = torch.cat([train, later])
    truth = (as_it_came[12:] / as_it_came[:-12])[-len(later) :]
    perfect = AirRNN()
    monkeypatch.setattr(perfect, "forecast", lambda *_, steps: (truth - low) / (high - low))
    assert "off by 0.0% on average" in draw_forecast(perfect).alt
    learned, forecast, actual = drawn[0].lines
    assert learned.get_ydata().tolist() == train.tolist()
    assert list(forecast.get_ydata()) == pytest.approx(later.tolist())
    assert actual.get_ydata().tolist() == later.tolist()
    years = [1949 + month / 12 for month in range(144)]  # 1949-01 to 1960-12
    assert [*learned.get_xdata(), *forecast.get_xdata()] == pytest.approx(years)
    last_year = AirRNN()
    monkeypatch.setattr(
        last_year, "forecast", lambda *_, steps: (1 + 0 * truth - low) / (high - low)
    )
    repeated = train[-12:].repeat(2)[:23]
    error = ((repeated - later).abs() / later).mean()
    assert f"off by {error:.1%} on average" in draw_forecast(last_year).alt


def test_each_image_stands_above_the_name_of_its_class(drawn):
    images = offline_images(train=60, test=10)
    draw_images(images)
    for shown, name in zip(drawn[0].images, images.classes, strict=True):
        left, right, bottom, top = shown.get_extent()
        (first_x, last_x), (first_y, last_y) = drawn[0].get_xlim(), drawn[0].get_ylim()
        assert first_x < left < right < last_x and first_y < bottom < top < last_y
        (below,) = [
            text.get_text()
            for text in drawn[0].texts
            if left < text.get_position()[0] < right and 0 < bottom - text.get_position()[1] < 0.2
        ]
        first = images.train_labels.tolist().index(images.classes.index(name))
        assert below == name
        assert torch.equal(torch.as_tensor(shown.get_array()).permute(2, 0, 1), images.train[first])
