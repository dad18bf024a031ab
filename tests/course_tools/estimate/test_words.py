"""Times and amounts of money as a person says them."""

import pytest

from course_tools.estimate.words import amounts, span


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        ((25, 25), "25 seconds"),
        ((20 * 3600, 50 * 3600), "20 to 50 hours"),
        ((22 * 3600, 55 * 3600), "22 to 55 hours"),
        ((144, 216), "2.4 to 3.6 minutes"),
        ((60 * 3600, 90 * 3600), "2.5 to 3.8 days"),
        ((72 * 60, 182 * 60), "1.2 to 3 hours"),
        ((41, 344), "41 seconds to 5.7 minutes"),
        ((40 * 3600, 100 * 3600), "40 hours to 4.2 days"),
        ((0.00042, 0.00094), "420 to 940 microseconds"),
        ((30 * 3600, 60 * 3600), "30 to 60 hours"),
        ((40 * 3600, 95 * 3600), "40 to 95 hours"),
        ((9.94, 9.96), "9.9 to 10 seconds"),
        ((3600, 3600), "1 hour"),
    ],
)
def test_times_are_in_the_units_that_a_person_uses(seconds, words):
    assert span((seconds[0] / 3600, seconds[1] / 3600)) == words


@pytest.mark.parametrize(
    ("low", "high", "currency", "words"),
    [
        (0.001, 0.002, "$", "less than $0.01"),
        (0.001, 0.02, "EUR", "up to 0.02 EUR"),
        (9.999, 41.4, "$", "$10 to $41"),
        (0.0049, 0.0051, "$", "up to $0.01"),
        (0.0051, 9.9, "$", "$0.01 to $9.90"),
    ],
)
def test_amounts_of_money_are_never_written_as_nothing(low, high, currency, words):
    assert amounts((low, high), currency) == words
