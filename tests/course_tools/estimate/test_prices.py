"""Money: list prices with their source, free first, and buying against renting."""

import re
from dataclasses import replace

import pytest
import torch
from course_lessons.evidence.published import published
from torch import nn

from course_tools.estimate import estimate
from course_tools.estimate.advice import advice
from course_tools.estimate.chips import all_chips
from course_tools.estimate.choice import choose
from course_tools.estimate.free import cut_into_sessions, free_sessions
from course_tools.estimate.own_card import buy_or_rent
from course_tools.estimate.prices import KINDS, list_prices, price_file
from course_tools.estimate.time.step_time import StepTime

MODEL, X = nn.Linear(4096, 4096), torch.empty(1, 4096)
WHOLE = {"batch": 8192, "samples": 10**8}


def lasting(row, hours):
    """Return a row whose job takes so many hours, within a factor of 1.5."""
    parts = StepTime(0.0, 0.0, 1.0)
    evidence = replace(row.evidence, factor=1.5, slower=None)
    samples = int(hours * 3600 * row.batch)
    return replace(row, step_s=1.0, samples=samples, parts=parts, evidence=evidence)


@pytest.fixture(scope="module")
def found():
    return estimate(MODEL, X, **WHOLE, devices=["T4", "RTX 4090"])


def test_every_list_price_is_of_a_chip_and_says_who_when_and_where():
    names = {chip.name for chip in all_chips()}
    providers = {one["name"]: one for one in price_file()["providers"]}
    for row in price_file()["prices"]:
        assert row["usd_per_hour"].keys() <= names and row["provider"] in providers, row
        assert re.fullmatch(r"20\d\d-\d\d(-\d\d)?", row["date"]), row
        assert row["source"].startswith("https://") and row["kind"] in KINDS, row
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
        price.kind == KINDS[0] for name, price in list_prices().items() if name != "RTX 5090"
    )
    assert estimate(MODEL, X, devices=["T4"], prices={"T4": 0}).rows[0].cost == 0
    with pytest.raises(ValueError, match="only of RunPod, Lambda"):
        estimate(MODEL, X, prices="Acme")


def test_what_is_free_is_counted_as_one_card_of_colab_and_two_of_kaggle(found):
    colab, kaggle = found.free
    assert [row.name for row in found.free] == ["T4 on Colab", "2 x T4 on Kaggle"]
    assert colab.cost == kaggle.cost == 0 and colab.step_s == found["T4"].step_s
    two = estimate(MODEL, X, **WHOLE, devices=["2 x T4"])
    assert kaggle.hours == two.rows[0].hours == two.free[0].hours and len(two.free) == 1
    assert len(estimate(MODEL, X, devices=["T4", "2 x T4"]).free) == 2
    assert not estimate(MODEL, X, devices=["8 x A100"]).free
    assert not estimate(MODEL, X, devices=["A100"], precision="bf16").free


@pytest.mark.parametrize(
    ("hours", "flops", "deadline", "words"),
    [
        # minutes are never rented, and hours only if what is free cannot carry them
        (0.1, 1e16, None, r"Free: a T4 on Colab takes 4 to 9 minutes, in one session, unchecked\."),
        (6, 1e18, None, r"Free: a T4 on Colab .* The RTX 4090 would take .*"),
        (12, 1e18, None, r"Free: 2 x T4 on Kaggle take .*, in about 2 sessions, unchecked\..*"),
        (100, 1e19, None, r"Rent the RTX 4090: .*"),
        (6, 1e18, 4, r"Rent the RTX 4090: .*"),
        (0.001, 4e12, None, r"The job is small: .* Your own CPU is probably enough: .*"),
        # 80 seconds on a GPU of 60 TFLOP/s, which are hours of a CPU: a U-Net of diffusion
        (0.02, 8e14, None, r"Free: a T4 on Colab takes .* seconds, in one session, unchecked\."),
    ],
)
def test_free_comes_first_where_it_carries_the_job(found, hours, flops, deadline, words):
    colab, kaggle = found.free
    free = [lasting(row, hours) for row in (colab, kaggle)]
    paid = replace(lasting(found["RTX 4090"], hours / 4), flops=flops)
    assert re.fullmatch(words, advice([paid], deadline, free))
    if deadline is None and hours < 0.5:  # nor is it rented where nothing is free
        assert advice([paid], None, ()).startswith(("The job is small", "The job is short"))


@pytest.mark.parametrize(
    ("one", "two", "taken"), [(4, 2, 1), (0.3, 0.2, 0), (7, 30, 0), (30, 2, 1)]
)
def test_two_free_cards_come_first_where_they_save_more_than_minutes(found, one, two, taken):
    free = [lasting(row, hours) for row, hours in zip(found.free, (one, two), strict=True)]
    assert choose([], None, free).row is free[taken]


@pytest.mark.parametrize(
    ("slow_end_s", "flops", "said"),
    [
        (119, 6.5e12, "The job is small"),  # 110 GFLOP/s for a minute, and two minutes of a card
        (119, 6.7e12, "The job is short"),
        (121, 6.5e12, "The job is short"),
        (599, 1e18, "The job is short"),  # ten minutes
        (601, 1e18, "Rent the RTX 4090"),
    ],
)
def test_a_job_is_small_for_a_cpu_or_short_for_a_card_up_to_a_number_of_minutes(
    found, slow_end_s, flops, said
):
    row = replace(found["RTX 4090"], flops=flops)
    row = lasting(row, slow_end_s / 3600 / 1.5)
    assert advice([row], None).startswith(said)


@pytest.mark.parametrize(("minutes", "said"), [(9.9, "Stay"), (10.1, "Free")])
def test_ones_own_machine_is_taken_for_ten_minutes(found, minutes, said):
    own = estimate(MODEL, X, devices=["T4"], this_machine=1.0).rows[-1]
    mine = replace(own, samples=round(minutes * 60 * own.batch), step_s=1.0)
    assert advice([mine], None, [lasting(found.free[0], 0.2)]).startswith(said)


def test_a_job_that_memory_limits_is_not_small_for_its_few_operations(found):
    row = replace(lasting(found["RTX 4090"], 0.01), flops=1e9, parts=StepTime(0.0, 1.0, 0.0))
    assert advice([row], None).startswith("The job is short")


def test_published_cpus_have_done_a_small_job_in_a_minute():
    rows = [row for row in published(precision="fp32") if row.device.startswith("Core")]
    rates = [2e9 * row.gmacs * row.samples_per_s for row in rows if row.gmacs]
    assert len(rates) > 2800
    done = [rate * 60 >= 6.6e12 for rate in rates]
    assert sum(done) / len(done) == pytest.approx(0.9, abs=0.02)


def test_ones_own_machine_comes_before_what_is_free_unless_that_is_surely_faster(found):
    colab = lasting(found.free[0], 2)
    own = estimate(MODEL, X, devices=["T4"], this_machine=1.0).rows[-1]
    for hours, said in ((0.1, "Stay"), (2.5, "Free"), (0.5, "Stay"), (40, "Free")):
        mine = replace(own, samples=int(hours * 3600 * own.batch), step_s=1.0)
        assert advice([mine], None, [colab]).startswith(said), hours


def test_a_card_is_surely_faster_only_where_the_intervals_do_not_overlap(found):
    own = estimate(MODEL, X, devices=["T4"], this_machine=1.0).rows[-1]
    mine = replace(own, samples=int(40 * 3600 * own.batch), step_s=1.0)
    for hours, named in ((10, True), (35, False)):  # 35 hours are 23 to 53
        text = advice([mine, lasting(found["RTX 4090"], hours)], None)
        assert text.startswith("Stay on your own machine") == (not named or "would take" in text)
        assert ("RTX 4090" in text) == named, text


def test_a_session_ends_at_its_last_whole_checkpoint():
    # ten epochs of 5 hours in sessions of 12: two each, and 2 hours lost at the end of each
    assert cut_into_sessions(50, 10, 12) == (5, 2, 5, 2)
    assert cut_into_sessions(55, 11, 12).sessions == 6  # the eleventh has one of its own
    assert cut_into_sessions(11, 10, 12).sessions == 1
    # three epochs of 20 hours: none fits into a session
    assert cut_into_sessions(60, 3, 12) == (20, 0, 5, 0)


def test_the_hours_are_also_sessions_and_weeks_of_what_is_free(found):
    colab, kaggle = (lasting(row, 50) for row in found.free)
    said = free_sessions(colab, epochs=10)
    assert "about 5 sessions" in said and "keeps 2 epochs and loses the 2 hours" in said
    assert "promised" in said and "https://" in said
    # four sessions of 12 hours and one of 10
    assert "about 2 weeks of its quota" in free_sessions(kaggle, epochs=10)
    # three of 12, each with an epoch of 7, and the last one ends with its epoch: 43 of 30 a week
    assert "or about a week of its quota" in free_sessions(lasting(kaggle, 28), epochs=4)
    assert "within the epoch" in free_sessions(lasting(colab, 60), epochs=3)
    assert "checkpoint" not in free_sessions(lasting(colab, 5), epochs=3)
    assert "epoch" not in free_sessions(colab, epochs=None)
    # it does not fit, or it is done at once
    assert not free_sessions(replace(colab, fits=False), epochs=10)
    assert not free_sessions(lasting(colab, 0.6), epochs=10)  # 24 to 54 minutes
    assert free_sessions(lasting(colab, 0.7), epochs=10)
    for hours, said in ((14, "part of a week"), (16, "about a week"), (46, "about 2 weeks")):
        assert said in free_sessions(lasting(kaggle, hours), epochs=hours)  # of 30 a week


def test_a_bill_has_more_lines_than_the_hours(found):
    assert "billed too" in repr(found) and "billed by the second" in found.details()
    said = " ".join(found.details().split())
    assert "stopped machine is billed for its disk" in said and "up to 91% less at Google" in said
    assert "the RTX 4090 $0.22 per hour (RunPod, 2026-03" in said and "the H200 $" not in said
    own = estimate(MODEL, X, devices=["T4"], prices={"T4": 0.3})
    assert "a whole hour at least" in " ".join(own.details().split())
    free = estimate(MODEL, X, devices=["T4"], prices={"T4": 0})
    assert "you pay for" not in free.details() and "billed too" not in repr(free)


def test_buying_pays_off_when_the_rent_that_is_saved_has_paid_the_card():
    # 450 W at 0.40 a kilowatt-hour is 0.18 an hour, so an hour saves 0.50 of 0.68
    plan = buy_or_rent("RTX 4090", 2000, kwh_price=0.4, rent_per_hour=0.68)
    assert plan.electricity_per_hour == pytest.approx(0.18)
    assert plan.break_even_hours == pytest.approx(4000) and "4,000 hours" in repr(plan)
    assert "24 weeks of day and night" in " ".join(repr(plan).split())
    for rent in (0.5, 0.9):  # of which the second is the electricity's
        plan = buy_or_rent("4090", 2000, kwh_price=2, rent_per_hour=rent)
        assert "always cheaper" in repr(plan)
    assert "RunPod" in repr(buy_or_rent("4090", 2000, kwh_price=0.3))
    used = buy_or_rent("RTX 3090", kwh_price=0.3)
    assert used.card_price == 800 and "second-hand, 2026-05-16, https" in repr(used)
    for card, wrong in ((2000, {"kwh_price": 0}), (2000, {"kwh_price": 1, "currency": "EUR"})):
        with pytest.raises(ValueError, match=r"kwh_price|Pass rent_per_hour"):
            buy_or_rent("4090", card, **wrong)
    with pytest.raises(ValueError, match=r"second-hand price of the RTX 4090.*Pass card_price"):
        buy_or_rent("4090", kwh_price=0.3)
