"""The answer in words: what is recommended, and what is said beside it."""

import re

import pytest

from course_tools.estimate import Chip, Machine
from course_tools.estimate.advice import advice, too_close_to_call
from course_tools.estimate.answer import Answer
from course_tools.estimate.prices import Price
from course_tools.estimate.time.error_factor import ErrorFactor
from course_tools.estimate.time.step_time import StepTime


def row_of(device, hours, price, fits=True, factor=1.5, currency="$", kind="", checked=True):
    own = device == "this machine"
    return Answer(
        machine=None if own else Machine(Chip(device, 100, 900, 16)),
        precision="bf16",
        step_s=1.0,
        batch=1,
        samples=hours * 3600,
        epochs=1,
        price=None if price is None else Price(price, "-", currency, kind and "A", kind),
        evidence=ErrorFactor(1.0 if own else factor, checked, ()),
        parts=None if own else StepTime(0.0, 1.0, 0.0),
        fits=None if own else fits,
    )


ANSWERS = [
    ([("T4", 100, 0.3), ("A100", 20, 2.0)], None, r"Rent the T4: .* days, \$20 to .*\."),
    # first the one that is in time, then the one that costs less
    (
        [("4090", 40, 0.3), ("A100", 20, 2.0), ("H100", 10, 9.0)],
        48,
        r"Rent the A100: 13 to 30 hours, \$27 to \$60 \(your price\)\. "
        r"The 4090 costs less \(\$8.00 to \$18\) but may miss your 48 hours\.",
    ),
    ([("A100", 20, 2.0), ("4090", 90, 0.3)], 48, r"Rent the A100: [^.]*\."),
    # one that has no price is not denied
    (
        [("4090", 40, 0.3), ("5090", 20, None)],
        48,
        "The 5090 meets your 48 hours even at the slow end: 13 to 30 hours; no price is known "
        r"here\. The 4090 may miss them: 27 to 60 hours, \$8.00 to \$18 \(your price\)\.",
    ),
    (
        [("L4", 30, None), ("5090", 20, None)],
        48,
        "The 5090 meets your 48 hours even at the slow end.*no price is known here.",
    ),
    # one that is certain to miss is not recommended
    (
        [("A100", 20, 2.0), ("H100", 10, 9.0), ("T4", 100, 0.1)],
        12,
        r"None surely meets your 12 hours\. The H100 may: 6.7 to 15 hours, .*",
    ),
    (
        [("T4", 100, 0.3), ("A100", 20, 2.0)],
        5,
        "None of them meets your 5 hours: the fastest is the A100, 13 to 30 hours, .*",
    ),
    ([("this machine", 1512, 0), ("A100", 20, 2.0)], 48, r"Rent the A100: [^.]*\."),
    (
        [("this machine", 1512, 0), ("A100", 20, 2.0)],
        None,
        r"Stay on your own machine: 63 days, free\. The A100 would take 13 to 30 hours, .*",
    ),
    # a price of nothing is the least, whatever little the others cost
    ([("T4", 100, 0), ("A100", 20, 0.01)], None, r"Rent the T4: 2\.8 to 6\.2 days, free\."),
    (
        [("this machine", 40, 0), ("A100", 4, 0), ("H100", 2, 0.1)],
        None,
        r"Stay on your own machine: 40 hours, free\. The A100 would take .* hours, free\.",
    ),
    ([("this machine", 0.1, 0), ("A100", 0.01, 2.0)], 48, r"Stay on your own machine: 6 min.*"),
    ([("H100", 0.1, 9.0)], 0.1, r"None surely meets your 0\.1 hours\. The H100 may: 4 to 9 min.*"),
    ([("H100", 4, 9.0)], 3, r"None surely meets your 3 hours\. The H100 may: 2.7 to 6 hours, .*"),
    ([("T4", 100, None)], None, "The T4 is the fastest: .*no price is known here."),
    ([("T4", 1, 0.1, False)], None, "It fits none.*"),
    ([("H100", 2, 9.0)], 1, "None of them meets your hour: the fastest is the H100, .*"),
    ([("H100", 4, 9.0)], 2, "None of them meets your 2 hours: the fastest is the H100, .*"),
]

HOME, CENTRE = {"kind": "in homes"}, {"kind": "on demand"}

LIKE = [
    # a card in a home is no cheaper offer of a card in a data centre, and alone it is the offer
    (
        [("5090", 20, 0.5, HOME), ("4090", 30, 0.7, CENTRE), ("3090", 9, 0.9, HOME)],
        "Rent the 4090: .* (A, on demand). The 3090 costs less ($5.40 to $12), but in homes (A).",
    ),
    ([("5090", 20, 0.5, HOME), ("3090", 50, 0.5, HOME)], "Rent the 5090: .* (A, in homes)."),
    ([("5090", 20, 0.5, HOME), ("4090", 30, 0.7, {})], "Rent the 5090: .* (A, in homes)."),
    # an unchecked card is passed over for a checked one that costs up to a quarter more, dearest
    (
        [("H100", 10, 1, {"checked": False}), ("4090", 12, 1, {})],
        "Rent the 4090: .* The H100 costs less ($6.67 to $15), but is unchecked.",
    ),
    ([("H100", 10, 1, {"checked": False}), ("4090", 13, 1, {})], "Rent the H100: .*, unchecked."),
    (
        [("H100", 10, 1, {"checked": False, "factor": 2}), ("4090", 16, 1, {})],
        "Rent the 4090: .* The H100 costs less ($5.00 to $20), but is unchecked.",
    ),
    # nothing is said of one that is late, or costs more at the dear end
    ([("5090", 90, 0.1, HOME), ("4090", 30, 0.7, CENTRE)], "Rent the 4090: [^.]*."),
    (
        [("H100", 9, 1, {"checked": False, "factor": 3}), ("4090", 16, 1, {})],
        "Rent the 4090: [^.]*.",
    ),
]


@pytest.mark.parametrize(("rows", "words"), LIKE)
def test_only_like_offers_are_compared_and_a_checked_card_is_preferred(rows, words):
    said = advice([row_of(*row, **more) for *row, more in rows], 60)
    assert re.fullmatch(re.sub(r"[($)]", r"\\\g<0>", words), said), said


@pytest.mark.parametrize(("rows", "deadline", "words"), ANSWERS)
def test_the_answer_names_what_is_in_time_then_what_costs_least(rows, deadline, words):
    assert re.fullmatch(words, advice([row_of(*row) for row in rows], deadline))


def test_two_currencies_are_not_compared():
    rows = [row_of("T4", 20, 9.0, currency="EUR"), row_of("A100", 20, 1.0)]
    assert "Rent the T4" in advice(rows, 48)  # the examples are in dollars
    free = row_of("this machine", 30, 0)  # what is free is so in every currency
    assert "Stay on your own machine" in advice([*rows, free], 48)


PAIR = {"a": 1, "b": 1.2}


def test_devices_whose_intervals_overlap_are_not_too_close_to_call():
    names = {"A100": 20, "H100": 12, "4090": 40, "T4": 200, "5090": 24, "one": 2000}
    (said,) = too_close_to_call([row_of(name, hours, None) for name, hours in names.items()])
    assert "their intervals overlap: H100, A100 and 5090; A100, 5090 and 4090." in said
    assert too_close_to_call([row_of("A100", 20, None), row_of("T4", 200, None)]) == []
    pairs = {f"{name}{size}": 10**size * more for size in range(4) for name, more in PAIR.items()}
    (said,) = too_close_to_call([row_of(name, hours, None) for name, hours in pairs.items()])
    assert said.endswith("overlap: a0 and b0; a1 and b1; and 2 more groups.")
