"""The exercises of lesson 8: rent for your own model, doubt a speed-up."""

from typing import Any

from course_lessons.exercises.frame import Mistakes, exercise
from course_lessons.exercises.read_answer import Wrong, expect, expect_pair, number_of, quote
from course_tools.estimate.answer import Answer
from course_tools.estimate.answers import Answers
from course_tools.estimate.choice import comparable
from course_tools.estimate.words import span


@exercise(
    "Leave out what does not fit, then what may be late. Only then compare money.",
    "A device is in time if the end of its interval is: `row.hours_interval[1] <= deadline`. "
    "`found.cheapest(deadline)` does both.",
    solution="""
        def my_rent():
            prices = {"T4": 0.35, "RTX 4090": 0.34, "A100": 1.5}
            found = estimate(
                my_model, my_inputs, batch=64, samples=50_000, epochs=10, deadline_hours=24,
                devices=list(prices), prices=prices,
            )
            best = found.cheapest(24)
            return found, best.device if best else None
    """,
    right="Whatever you rent: take it for ten minutes first, measure a step, and compare.",
)
def rent(answer: Any) -> Mistakes:
    """Write my_rent(): your estimate and the cheapest device that is in time, or None.

    The estimate is of your own model, with a deadline and at least two priced devices. A device is
    in time if the slow end of its interval is.
    """
    given = answer()
    expect_pair(given, "the estimate and the name of a device")
    found, name = given
    expect(found, Answers, "what `estimate` returned")
    deadline = found.deadline_hours
    yield deadline is None, "Your estimate has no deadline. Pass deadline_hours= to `estimate`."
    priced = comparable(found.rows)
    yield len(priced) < 2, "Compare at least two devices with a price: pass prices= for them."
    best = found.cheapest(deadline)
    best_name = "" if best is None else _the(best)
    if name is None:
        yield (
            best is not None,
            f"There is one: even at its slow end, {best_name} meets the deadline.",
        )
        return
    row = _row(found, getattr(name, "device", name))
    if row is None:
        raise Wrong(f"{quote(name)} is not among the devices of your estimate.")
    yield row.fits is False, f"The step does not fit into the memory of {_the(row)}."
    late = f"With {_the(row)} it may take {_text(row.hours_interval[1])}, and your deadline is "
    late += f"{_text(deadline)}. The slow end of the interval has to lie before it."
    yield row.hours_interval[1] > deadline, late
    yield row not in priced, f"There is no price for {_the(row)}: pass one, or take another."
    less = best is not None and (best.cost or 0.0) < (row.cost or 0.0)
    yield less, f"By the estimate {best_name} costs less, and meets it even at the slow end."


def _row(found: Answers, name: Any) -> Answer | None:
    """Return the row of a device by any name that `estimate` takes, or by a part of its name."""
    try:
        return found[name]
    except (KeyError, TypeError, ValueError):
        part = str(name).casefold()
        return next((row for row in found.rows if part in row.name.casefold()), None)


def _the(row: Answer) -> str:
    return f"the {row.device}" if row.machine else "your own machine"


def _text(hours: float) -> str:
    return span((hours, hours))


# What a vendor wrote: photographs per second, made up for this exercise. Only one of the claims
# compares like with like.
CLAIMS = {
    "A": {"old": ("fp32", 256, 400.0), "new": ("bf16", 256, 2400.0)},
    "B": {"old": ("bf16", 1, 95.0), "new": ("bf16", 256, 1900.0)},
    "C": {"old": ("bf16", 256, 1200.0), "new": ("bf16", 256, 2400.0)},
    "D": {"old": ("bf16", 256, 1200.0), "new": ("fp8, sparse", 256, 9600.0)},
}


@exercise(
    "A speed-up belongs to the card only if all else is the same. What differs in A?",
    "A changes the precision, B the batch, D the precision and the zeros that are skipped.",
    solution='my_claim = ("C", 2.0)',
    right="Ask of every speed-up: which precision, which batch, and were zeros skipped?",
)
def speed_up(answer: Any) -> Mistakes:
    """Set my_claim to the one fair claim and its speed-up, such as ("A", 6.0).

    Each claim in ex.CLAIMS gives precision, batch and photographs per second of an old and a new
    card.
    """
    expect_pair(answer, "such as ('A', 6.0)")
    name, ratio = answer
    name = str(name).strip().upper()
    yield name == "A", "Claim A compares fp32 with bf16: how fast is the old card in bf16?"
    launches = "at batch 1 the launches are the limit, on both cards"
    yield name == "B", f"Claim B compares batch 1 with batch 256: {launches}."
    zeros = "counts multiplications by zero that are skipped"
    yield name == "D", f"Claim D compares bf16 with 8 bits, and {zeros}."
    yield name != "C", f"There are the claims A, B, C and D, and no {quote(name)}."
    ratio = number_of(ratio, "the speed-up of claim C")
    other = f"Claim C goes from 1,200 to 2,400 photographs per second. {ratio:g} is not that ratio."
    yield abs(ratio - 2.0) > 0.01, other
