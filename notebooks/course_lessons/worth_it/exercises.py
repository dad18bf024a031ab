"""The exercises of lesson 7: rent for your own model, doubt a speed-up, find what limits a step."""

from typing import Any

from course_lessons.exercises.frame import Mistakes, exercise
from course_lessons.exercises.read_answer import expect, expect_pair, number_of, quote
from course_utils.estimate.result import Estimate


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
    right="Rent it for ten minutes first, measure one step, and compare it with the estimate.",
)
def rent(answer: Any) -> Mistakes:
    """Write my_rent(): your estimate and the device that you would rent, or None.

    The estimate is of your own model, with a deadline and at least two priced devices.
    """
    given = answer()
    expect_pair(given, "the estimate and the name of a device")
    found, name = given
    expect(found, Estimate, "what `estimate` returned")
    deadline = found.question.deadline_hours
    yield deadline is None, "Your estimate has no deadline. Pass deadline_hours= to `estimate`."
    priced = [row for row in found.rows if row.cost is not None]
    yield len(priced) < 2, "Compare at least two devices with a price: pass prices= for them."
    best = found.cheapest(deadline)
    if name is None:
        yield best is not None, f"There is one that is surely in time: {best and best.device}."
        return
    known = {row.device: row for row in found.rows}
    alike = [device for device in known if str(name).casefold() in device.casefold()]
    yield not alike, f"{quote(name)} is not among the devices of your estimate."
    row = known[alike[0]]
    yield row.fits is False, f"The step does not fit into the memory of the {row.device}."
    low, high = row.hours_interval
    yield low > deadline, f"The {row.device} misses your deadline even if the estimate is slow."
    may_miss = f"The {row.device} may take {high:.2g} hours, and your deadline is {deadline:g}."
    yield high > deadline, f"{may_miss} Its whole interval has to lie before it."
    cheaper = f"The {best and best.device} is surely in time too, and costs less."
    yield best is not None and best.device != row.device, cheaper


# What a vendor wrote: images a second, made up for this exercise. Only one of the claims compares
# like with like.
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

    Each claim in ex.CLAIMS gives precision, batch and images a second of an old and a new card.
    """
    expect_pair(answer, "such as ('A', 6.0)")
    name, ratio = answer
    yield name == "A", "Claim A compares fp32 with bf16: how fast is the old card in bf16?"
    launches = "at batch 1 the launches are the limit, on both cards"
    yield name == "B", f"Claim B compares batch 1 with batch 256: {launches}."
    zeros = "counts multiplications by zero that are skipped"
    yield name == "D", f"Claim D compares bf16 with 8 bits, and {zeros}."
    yield name != "C", f"There are the claims A, B, C and D, and no {quote(name)}."
    ratio = number_of(ratio, "the speed-up of claim C")
    other = f"Claim C goes from 1,200 to 2,400 images a second. {ratio:g} is not that ratio."
    yield abs(ratio - 2.0) > 0.01, other


# A device with round figures: 100 TFLOP/s, 1 TB/s, and 10 µs for each launch.
WORKS = {
    "tiny": {"flops": 1e6, "bytes": 1e5, "kernels": 300},
    "add": {"flops": 1e9, "bytes": 12e9, "kernels": 1},
    "product": {"flops": 1e12, "bytes": 1e9, "kernels": 1},
    "attention": {"flops": 2e11, "bytes": 5e9, "kernels": 40},
}
KINDS = ("launches", "memory", "arithmetic")
LIMITS = {"tiny": "launches", "add": "memory", "product": "arithmetic", "attention": "memory"}


@exercise(
    "Each has three times: kernels x 10 µs, bytes / 1e12 and flops / 1e14. Which is the largest?",
    "For `attention`: launches 0.4 ms, memory 5 ms, arithmetic 2 ms.",
    solution="""
        my_limits = {
            "tiny": "launches", "add": "memory", "product": "arithmetic", "attention": "memory"
        }
    """,
    right="A faster chip helps each differently: `tiny` gains nothing from more bandwidth.",
)
def limits(answer: Any) -> Mistakes:
    """Set my_limits to a dictionary that says what limits each piece of work in ex.WORKS.

    It is "launches", "memory" or "arithmetic", on a device with 100 TFLOP/s, 1 TB/s and 10 µs for
    each launch.
    """
    expect(answer, dict, "a dictionary such as {'tiny': 'launches'}")
    for name, work in WORKS.items():
        yield name not in answer, f"`{name}` is not in your dictionary."
        said = answer.get(name)
        kinds = f"`{name}` is limited by launches, memory or arithmetic, not by {quote(said)}."
        yield said not in KINDS, kinds
        parts = (work["kernels"] * 10, work["bytes"] / 1e6, work["flops"] / 1e8)
        times = "{:g} µs, {:g} µs and {:g} µs".format(*parts)
        largest = f"For `{name}` launches, memory and arithmetic take {times}"
        yield said != LIMITS[name], f"{largest}: the largest is not {said}."
