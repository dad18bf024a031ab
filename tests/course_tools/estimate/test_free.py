"""What is free, in sessions and weeks."""

from dataclasses import replace

import pytest
from estimate_questions import MODEL, WHOLE, X, lasting

from course_tools.estimate import estimate
from course_tools.estimate.free import cut_into_sessions, free_sessions


@pytest.fixture(scope="module")
def found():
    return estimate(MODEL, X, **WHOLE, devices=["T4", "RTX 4090"])


def test_what_is_free_is_counted_as_one_card_of_colab_and_two_of_kaggle(found):
    colab, kaggle = found.free
    assert [row.name for row in found.free] == ["T4 on Colab", "2 x T4 on Kaggle"]
    assert colab.cost == kaggle.cost == 0 and colab.step_s == found["T4"].step_s
    two = estimate(MODEL, X, **WHOLE, devices=["2 x T4"])
    assert kaggle.hours == two.rows[0].hours == two.free[0].hours and len(two.free) == 1
    assert len(estimate(MODEL, X, devices=["T4", "2 x T4"]).free) == 2
    assert not estimate(MODEL, X, devices=["8 x A100"]).free
    assert not estimate(MODEL, X, devices=["A100"], precision="bf16").free


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
