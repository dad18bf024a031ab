"""List prices with their source, and what a bill has beside them."""

import re

import pytest
from estimate_questions import MODEL, WHOLE, X

from course_tools.estimate import estimate
from course_tools.estimate.chips import all_chips
from course_tools.estimate.prices import OFFERS, list_prices, price_file


@pytest.fixture(scope="module")
def found():
    return estimate(MODEL, X, **WHOLE, devices=["T4", "RTX 4090"])


def test_every_list_price_is_of_a_chip_and_says_who_when_and_where():
    names = {chip.name for chip in all_chips()}
    providers = {one["name"]: one for one in price_file()["providers"]}
    for row in price_file()["prices"]:
        assert row["usd_per_hour"].keys() <= names and row["provider"] in providers, row
        assert re.fullmatch(r"20\d\d-\d\d(-\d\d)?", row["date"]), row
        assert row["source"].startswith("https://") and row["kind"] in OFFERS, row
        assert all(0 < usd < 100 for usd in row["usd_per_hour"].values()), row
    assert len(list_prices()) >= 15
    spot, used = price_file()["spot"], price_file()["used"]
    others = [price_file()["stopped"], *spot["providers"], *spot["prices"], *used]
    assert all(one["source"].startswith("https://") for one in [*providers.values(), *others])
    assert {one["device"] for one in [*spot["prices"], *used]} <= names
    listed = list_prices()
    for one in spot["prices"]:  # what may be taken away costs less
        assert one["device"] not in listed or one["usd_per_hour"] < listed[one["device"]].per_hour


def test_a_provider_stands_for_its_list_and_ones_own_price_comes_first():
    asked = {"devices": ["A100", "H100", "T4"]}
    rows = {name: estimate(MODEL, X, **asked, prices=name) for name in ("RunPod", "Lambda")}
    assert rows["RunPod"]["A100"].price.per_hour < rows["Lambda"]["A100"].price.per_hour
    assert rows["Lambda"]["T4"].price is None and "Lambda" in rows["Lambda"]["H100"].price.source
    typed = estimate(MODEL, X, **asked, prices={"A100": 9})
    assert typed["A100"].price.per_hour == 9 and typed["H100"].price.provider == "Verda"
    # of one card a home asks less than a data centre, which comes first
    assert list_prices("Salad")["RTX 4090"].per_hour < list_prices()["RTX 4090"].per_hour
    assert all(
        price.kind == OFFERS[0] for name, price in list_prices().items() if name != "RTX 5090"
    )
    assert estimate(MODEL, X, devices=["T4"], prices={"T4": 0}).rows[0].cost == 0
    with pytest.raises(ValueError, match="only of RunPod, Lambda"):
        estimate(MODEL, X, prices="Acme")


def test_a_bill_has_more_lines_than_the_hours(found):
    assert "billed too" in repr(found) and "billed by the second" in found.details()
    said = " ".join(found.details().split())
    assert "stopped machine is billed for its disk" in said and "up to 91% less at Google" in said
    assert "the RTX 4090 $0.22 per hour (RunPod, 2026-03" in said and "the H200 $" not in said
    own = estimate(MODEL, X, devices=["T4"], prices={"T4": 0.3})
    assert "a whole hour at least" in " ".join(own.details().split())
    free = estimate(MODEL, X, devices=["T4"], prices={"T4": 0})
    assert "you pay for" not in free.details() and "billed too" not in repr(free)
