"""The picture of money and time: it agrees with the answer in words, and can be read."""

import pytest
from course_lessons.worth_it.money import _amounts, _round_numbers, draw_money
from torch import empty, nn

from course_tools.estimate import Chip, estimate

SMALL = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 10)), empty(1, 64)
PRICES = {"T4": 0.35, "RTX 4090": 0.34, "A100": 1.5, "H100": 3.0}


def ask(**more):
    asked = {"batch": 64, "samples": 10**11, "devices": list(PRICES), "prices": PRICES}
    return estimate(*SMALL, **asked | more)


def axes_of(found, drawn):
    draw_money(found)
    return drawn[-1]


@pytest.mark.parametrize(
    ("asked", "title"),
    [
        ({}, "Cheapest: {}"),
        ({"deadline_hours": 1e9}, "Cheapest that meets the deadline: {}"),
        ({"deadline_hours": 1e9, "count": 1024}, "Cheapest in time: {}"),
        ({"deadline_hours": 500}, "May be in time: {}"),
        ({"deadline_hours": 1}, "None is in time; the fastest: {}"),
        ({"samples": 1000}, "A small job: try your own CPU first"),
        ({"samples": 1000, "this_machine": 1e-3}, "Stay on your own machine"),
    ],
)
def test_the_title_names_the_device_that_the_answer_names(asked, title, drawn):
    found = ask(**asked)
    shown = axes_of(found, drawn).get_title(loc="left")
    start, _, _ = title.partition("{}")
    assert shown.startswith(start)
    name = shown.removeprefix(start)
    if "{}" in title:
        assert name in [row.name for row in found.rows] and name in found.answer
    else:
        assert "CPU" in found.answer or "your own machine" in found.answer


def test_a_step_that_fits_no_device_recommends_none():
    wide = nn.Sequential(*(nn.Linear(2**14, 2**14, device="meta") for _ in range(6)))
    asked = {"batch": 64, "prices": {"T4": 0.01, "H100": 3}}
    for samples, title in ((10**6, "A short job: "), (10**8, "Cheapest: H100 SXM")):
        asked["samples"] = samples
        said = draw_money(estimate(wide, empty(1, 2**14), devices=["T4", "H100"], **asked)).alt
        assert said.startswith(title) and "no: needs" in said
    said = draw_money(estimate(wide, empty(1, 2**14), devices=["T4"], **asked)).alt
    assert said.startswith("It fits none of them")


def test_a_marker_is_full_in_time_and_stands_at_its_money_and_its_hours(drawn):
    found = ask(deadline_hours=1)
    deadline = sorted(row.hours_interval[1] for row in found.rows)[1]
    axes = axes_of(ask(deadline_hours=deadline), drawn)
    markers = [line for line in axes.lines if line.get_marker() == "s"][len(found.free) :]
    free = [line.get_xdata()[0] for line in axes.lines if line.get_marker() == "s"]
    assert len(found.free) == 2 and max(free[:2]) < min(row.cost_interval[0] for row in found.rows)
    hollow = [line.get_markerfacecolor() == "white" for line in markers]
    assert hollow == [row.hours_interval[1] > deadline for row in found.rows] and len(hollow) == 4
    for line, row in zip(markers, found.rows, strict=True):
        assert (line.get_xdata()[0], line.get_ydata()[0]) == (row.cost, row.hours)
    legend = [text.get_text() for text in axes.figure.legends[0].get_texts()]
    assert legend == ["in time", "late, or may be late"]


@pytest.mark.parametrize(
    ("end", "factor", "note"),
    # drawn up to ten times beyond all devices
    [
        (0, 1 / 9.9, "dotted: the deadline of "),
        (0, 1 / 10.1, " is far below"),
        (1, 9.9, "dotted: the deadline of "),
        (1, 10.1, " is far above"),
    ],
)
def test_a_deadline_is_drawn_unless_it_is_far_from_all_devices(end, factor, note, drawn):
    found = ask()
    rows = [*found.free, *found.rows]
    ends = sorted(hours for row in rows for hours in row.hours_interval)
    deadline = ends[-end] * factor
    axes = axes_of(ask(deadline_hours=deadline), drawn)
    dotted = [line.get_ydata()[0] for line in axes.lines if line.get_linestyle() == ":"]
    assert note in axes.get_xlabel() and dotted == [deadline] * ("dotted" in note)


@pytest.mark.parametrize(
    ("low", "high", "numbers"),
    [
        (1, 100, [1, 2, 5, 10, 20, 50, 100]),
        (0.03, 4, [0.05, 0.1, 0.2, 0.5, 1, 2]),
        (1, 1000, [1, 10, 100, 1000]),  # with all between them there would be ten
        (1, 1e30, [1, 1e4, 1e8, 1e12, 1e16, 1e20, 1e24, 1e28]),
    ],
)
def test_ticks_are_at_most_eight_round_numbers(low, high, numbers):
    assert _round_numbers(low, high) == pytest.approx(numbers)


def test_devices_without_a_price_are_named_and_not_drawn(drawn):
    label = axes_of(ask(devices=["T4", "B200", "MI300X"], currency="EUR"), drawn).get_xlabel()
    assert label.endswith("not drawn: no price for B200 and MI300X")
    with pytest.raises(ValueError, match="needs a price"):
        draw_money(ask(devices=["MI300X"]))


@pytest.mark.parametrize("samples", [10**4, 10**7, 10**11])
def test_names_and_ticks_can_be_read_whatever_the_size_of_the_job(samples, drawn):
    own = Chip("the slow and dear one", peak_tflop_per_s=0.1, bandwidth_gb_per_s=1, memory_gb=24)
    more = {"devices": [*PRICES, own], "prices": PRICES | {own.name: 9}}
    axes = axes_of(ask(samples=samples, deadline_hours=48, this_machine=1e-3, **more), drawn)
    names = [text for text in axes.texts if text.get_text()]
    assert len(names) == 8  # with the two that are free; that none covers another `drawn` sees
    frame = axes.bbox.padded(1)
    assert all(
        frame.contains(*corner) for text in names for corner in text.get_window_extent().corners()
    )
    for axis in (axes.xaxis, axes.yaxis):
        ticks = [text.get_text() for text in axis.get_ticklabels()]
        assert 2 <= len(ticks) <= 9 and len(set(ticks)) == len(ticks)
        assert not any("e-" in text for text in ticks)


def test_what_costs_less_than_a_cent_is_drawn_as_a_cent():
    for row in ask(samples=1000).rows:
        assert row.cost < 0.01 and _amounts(row) == (0.01, 0.01, 0.01)


def test_a_dollar_sign_in_a_name_is_drawn_as_it_stands():
    own = Chip("a $5 card, not $6", peak_tflop_per_s=9, bandwidth_gb_per_s=300, memory_gb=24)
    said = draw_money(ask(devices=[own], prices={own.name: 0.1}, deadline_hours=10**7)).alt
    assert "a $5 card" in said
