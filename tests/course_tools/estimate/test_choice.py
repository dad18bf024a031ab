"""By which rule a device is chosen: one's own, what is free, a rented one."""

import re
from dataclasses import replace

import pytest
from course_lessons.evidence.published import published
from estimate_questions import MODEL, WHOLE, X, lasting

from course_tools.estimate import estimate
from course_tools.estimate.advice import advice
from course_tools.estimate.choice import choose
from course_tools.estimate.time.step_time import StepTime


@pytest.fixture(scope="module")
def found():
    return estimate(MODEL, X, **WHOLE, devices=["T4", "RTX 4090"])


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
