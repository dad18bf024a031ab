"""Buying a card against renting one."""

import pytest

from course_tools.estimate.own_card import buy_or_rent


def test_buying_pays_off_when_the_rent_that_is_saved_has_paid_the_card():
    # 450 W at 0.40 a kilowatt-hour is 0.18 an hour, so an hour saves 0.50 of 0.68
    plan = buy_or_rent("RTX 4090", 2000, kwh_price=0.4, rent_per_hour=0.68)
    assert plan.electricity_per_hour == pytest.approx(0.18) and "(your price)" in repr(plan)
    assert plan.break_even_hours == pytest.approx(4000) and "4,000 hours" in repr(plan)
    assert "24 weeks of day and night" in " ".join(repr(plan).split())
    for rent in (0.1, plan.electricity_per_hour):
        plan = buy_or_rent("RTX 4090", 2000, kwh_price=0.4, rent_per_hour=rent)
        assert "always cheaper" in repr(plan)
    unlisted = buy_or_rent(
        "RTX 3060", 300, kwh_price=0.4, rent_per_hour=0.1
    )  # nobody's list has it
    assert unlisted.rent_per_hour == 0.1 and "(your price)" in repr(unlisted)


def test_prices_that_nobody_gives_are_the_published_ones():
    assert "RunPod" in repr(buy_or_rent("RTX 4090", 2000, kwh_price=0.4))
    used = buy_or_rent("RTX 3090", kwh_price=0.3)
    assert used.card_price == 800 and "second-hand, 2026-05-16, https" in repr(used)


@pytest.mark.parametrize(
    ("device", "asked", "words"),
    [
        ("4090", {"card_price": 2000, "kwh_price": 0}, "kwh_price must be a positive number"),
        ("4090", {"kwh_price": 0.3}, r"second-hand price of the RTX 4090.*Pass card_price"),
        ("4090", {"card_price": 2000, "kwh_price": 0.3, "rent_per_hour": 0}, "rent_per_hour must"),
        ("3060", {"card_price": 300, "kwh_price": 0.3}, "RTX 3060 is known. Pass rent_per_hour="),
        ("TPU v5e", {"card_price": 2000, "kwh_price": 0.3}, "of the TPU v5e has no watts"),
    ],
)
def test_a_card_is_not_compared_without_its_prices(device, asked, words):
    with pytest.raises(ValueError, match=words):
        buy_or_rent(device, **asked)
