"""The exercises of lesson 0: what a faster processor buys, and what fits on your own device."""

from math import isclose
from typing import Any

from course_lessons.exercises.frame import Mistakes, exercise
from course_lessons.exercises.read_answer import number_of
from course_utils.devices import pick_device

WEIGHTS_BYTES = 4 * 25_557_032  # of ResNet-50: 32-bit numbers


@exercise(
    "The loading takes as long as before, and only the computing becomes shorter. "
    "How long does the whole job take now?",
    "Divide the seconds before, `load_s + compute_s`, by the seconds after, "
    "where `compute_s` is divided by `times`.",
    solution="""
        def my_speed_up(load_s, compute_s, times):
            return (load_s + compute_s) / (load_s + compute_s / times)
    """,
    right="This is Amdahl's law. `my_speed_up(60, 540, 200)` is 9.6: what remains is mostly "
    "loading, which lesson 7 shortens.",
)
def speed_up(answer: Any) -> Mistakes:
    """Write my_speed_up(load_s, compute_s, times): how many times as fast the whole job becomes
    when only its computing becomes `times` times as fast.
    """
    for load_s, compute_s, times in ((60.0, 540.0, 200.0), (1.0, 3.0, 2.0)):
        given = number_of(answer(load_s, compute_s, times), "how many times as fast the job is")
        before_s, after_s = load_s + compute_s, load_s + compute_s / times
        case = f"With {load_s:g} s of loading and {compute_s:g} s of computing"
        yield isclose(given, times), f"{case}: the loading does not become faster."
        yield isclose(given, after_s), f"{case}: {given:g} is the seconds it takes on the GPU."
        yield (
            isclose(given, after_s / before_s),
            f"{case}: {given:g} is the time after divided by the time before. Turn it round.",
        )
        # 9.6 is right as well
        wrong = not isclose(given, before_s / after_s, rel_tol=0.005)
        yield wrong, f"{case}, the job does not become {given:g} times as fast."


@exercise(
    "How many bytes do the weights take, and how many bytes does the device have?",
    "`sum(p.numel() for p in network.parameters())` numbers take 4 bytes each, "
    "and `best.memory_bytes` is the memory.",
    solution="""
        memory_bytes = best.memory_bytes or pick_device("cpu").memory_bytes
        my_copies = memory_bytes // (4 * sum(p.numel() for p in network.parameters()))
    """,
    right="Training needs far more than the weights: gradients, the optimizer's numbers and "
    "everything computed in between. Lesson 9 plans that for your own network.",
)
def copies(answer: Any) -> Mistakes:
    """Set my_copies to how many copies of ResNet-50's weights, in 32-bit numbers, fit into the
    memory of `best`, your best device (or of your CPU, if the list shows `?` for it).
    """
    given = number_of(answer, "how many copies fit")
    best = pick_device()
    memory_bytes = best.memory_bytes or pick_device("cpu").memory_bytes or 0
    fit = memory_bytes / WEIGHTS_BYTES
    yield isclose(given, 4 * fit, rel_tol=0.02), "A 32-bit number takes four bytes, and not one."
    yield given < 0.01, "Divide the memory by the weights, both in bytes (1 GB is 1,000,000,000)."
    yield (
        not isclose(given, fit, rel_tol=0.02),
        f"{best} has {memory_bytes:,} bytes and the weights take {WEIGHTS_BYTES:,}: "
        f"that is not {given:,.0f} copies.",
    )
