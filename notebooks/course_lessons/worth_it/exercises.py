"""The exercises of lesson 6: rent a device, doubt a speed-up, and find what limits a step."""

from typing import Any

from course_lessons.exercises import Mistakes, exercise
from course_lessons.exercises.read_answer import Wrong, expect, expect_pair, number_of, quote

# Seconds for one epoch, and the price of an hour: made up for this exercise, in the proportions of
# real cards.
OFFERS = {
    "laptop": (5400.0, 0.0),
    "small": (600.0, 0.4),
    "large": (120.0, 1.5),
    "fast": (80.0, 3.5),
}
CASES = (
    # epochs, hours until the deadline, the right answer, why
    (
        10,
        24.0,
        "laptop",
        "Ten epochs take the laptop 15 hours, which is in time, and it costs nothing.",
    ),
    (
        90,
        24.0,
        "large",
        "Ninety epochs take the small card 15 hours for 6.00, and the large one 3 hours for 4.50.",
    ),
    (90, 2.5, "fast", "Only the fast card is done within 2.5 hours: it takes 2."),
    (90, 1.0, None, "No device is done within an hour. Say so with None."),
)


@exercise(
    "First leave out every device that is too late. Only then compare money.",
    "hours = epochs * seconds / 3600, cost = hours * price. Keep the devices with hours <= deadline, and take the one "
    "with the lowest cost; None when nothing is left.",
    solution="""
        def my_choice(offers, epochs, deadline_hours):
            best, lowest = None, float("inf")
            for name, (epoch_s, price) in offers.items():
                hours = epochs * epoch_s / 3600
                if hours <= deadline_hours and hours * price < lowest:
                    best, lowest = name, hours * price
            return best
    """,
    right="A card with a high price can be the cheapest, because you rent it for less time. Your function ignores the "
    "error of the estimate: `cheapest` of this course asks that the whole interval lie before the deadline.",
)
def rent(answer: Any) -> Mistakes:
    """Write my_choice(offers, epochs, deadline_hours): the name of the device that trains in time
    for the least money, or None. `offers` maps each name to (seconds for an epoch, price of an
    hour).
    """
    for epochs, deadline, right, why in CASES:
        try:
            said = answer(dict(OFFERS), epochs, deadline)
        except Exception as error:
            if right:
                raise
            raise Wrong(
                f"{why} Your function raises {type(error).__name__}: {quote(error)}"
            ) from None
        small = f"{why} The lowest price of an hour is not the lowest price of the job."
        yield (right, said) == ("large", "small"), small
        late = "Ninety epochs take the laptop 135 hours. The deadline is 24 hours."
        yield (right, said) == ("large", "laptop"), late
        yield (
            isinstance(said, list | tuple),
            f"Return the name of one device alone, and not {quote(said)}.",
        )
        says = "None, as one without `return` does" if said is None else quote(repr(said))
        yield said != right, f"{why} Your function says {says}."


# What a vendor wrote: images a second, made up for this exercise. Only one of the claims compares
# like with like.
CLAIMS = {
    "A": {"old": ("fp32", 256, 400.0), "new": ("bf16", 256, 2400.0)},
    "B": {"old": ("bf16", 1, 95.0), "new": ("bf16", 256, 1900.0)},
    "C": {"old": ("bf16", 256, 1200.0), "new": ("bf16", 256, 2400.0)},
    "D": {"old": ("bf16", 256, 1200.0), "new": ("fp8, sparse", 256, 9600.0)},
}


@exercise(
    "A speed-up belongs to the card only if everything else is the same on both sides. What differs in A?",
    "A changes the precision, B the batch, D the precision and the zeros that are skipped. One is left.",
    solution='my_claim = ("C", 2.0)',
    right="Ask three things of every speed-up: which precision, which batch, and whether zeros were skipped.",
)
def speed_up(answer: Any) -> Mistakes:
    """Set my_claim to the one fair claim and its speed-up, such as ("A", 6.0). Each claim in
    ex.CLAIMS gives precision, batch and images a second of an old and a new card.
    """
    expect_pair(answer, "such as ('A', 6.0)")
    name, ratio = answer
    yield (
        name == "A",
        "Claim A compares fp32 with bf16: how fast is the old card in bf16? The claim does not say.",
    )
    launches = "Claim B compares batch 1 with batch 256: at batch 1 the launches are the limit, on both cards."
    yield name == "B", launches
    yield (
        name == "D",
        "Claim D compares bf16 with 8 bits, and counts multiplications by zero that are skipped.",
    )
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
    "Each piece of work has three times: kernels x 10 µs, bytes / 1e12 and flops / 1e14. Which is the largest?",
    "For `attention`: launches 0.4 ms, memory 5 ms, arithmetic 2 ms.",
    solution="""
        my_limits = {"tiny": "launches", "add": "memory", "product": "arithmetic", "attention": "memory"}
    """,
    right="A faster chip helps each of them differently: `tiny` gains nothing from more bandwidth or arithmetic.",
)
def limits(answer: Any) -> Mistakes:
    """Set my_limits to a dictionary that says what limits each piece of work in ex.WORKS,
    "launches", "memory" or "arithmetic", on a device with 100 TFLOP/s, 1 TB/s and 10 µs for each
    launch.
    """
    expect(answer, dict, "a dictionary such as {'tiny': 'launches'}")
    for name, work in WORKS.items():
        said = answer.get(name)
        yield name not in answer, f"`{name}` is not in your dictionary."
        yield (
            said not in KINDS,
            f"`{name}` is limited by launches, memory or arithmetic, not by {quote(said)}.",
        )
        times = f"{work['kernels'] * 10:g} µs, {work['bytes'] / 1e6:g} µs and {work['flops'] / 1e8:g} µs"
        largest = (
            f"For `{name}` launches, memory and arithmetic take {times}: the largest is not {said}."
        )
        yield said != LIMITS[name], largest
