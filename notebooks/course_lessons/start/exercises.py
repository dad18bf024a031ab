"""The exercises of lesson 0: what a faster processor buys, and what fits on your own device."""

import math
from functools import partial
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
    "loading, which lesson 6 shortens.",
)
def speed_up(answer: Any) -> Mistakes:
    """Write my_speed_up(load_s, compute_s, times): how many times as fast the whole job becomes
    when only its computing becomes `times` times as fast.
    """
    for load, compute, times in ((60.0, 540.0, 200.0), (1.0, 3.0, 2.0), (0.0, 7.0, 5.0)):
        given = number_of(answer(load, compute, times), "how many times as fast the job becomes")
        before, after = load + compute, load + compute / times
        near = partial(math.isclose, given, rel_tol=0.005)  # 9.6 is right as well
        if near(before / after):
            continue
        yield (
            near(times),
            f"The computing alone becomes {times:g} times as fast: "
            f"{load:g} s of loading stay as they are.",
        )
        yield (
            near(after),
            f"{given:g} is how many seconds the job takes on the GPU. "
            "Compare them with the seconds before.",
        )
        yield (
            near(after / before),
            f"{given:g} is the time after divided by the time before. Turn it round.",
        )
        yield near(before / times), "You made the loading faster as well."
        yield (
            True,
            f"With {compute:g} of {before:g} s made {times:g} times as fast, "
            f"the whole job does not become {given:g} times as fast.",
        )


@exercise(
    "How many bytes do the weights take, and how many bytes does the device have?",
    "`sum(p.numel() for p in network.parameters())` numbers take 4 bytes each, "
    "and `best.memory_bytes` is the memory.",
    solution="""
        memory_bytes = best.memory_bytes or pick_device("cpu").memory_bytes
        my_copies = memory_bytes // (4 * sum(p.numel() for p in network.parameters()))
    """,
    right="Training needs far more than the weights: gradients, the optimizer's numbers and "
    "everything computed in between. Lesson 8 plans that for your own network.",
)
def copies(answer: Any) -> Mistakes:
    """Set my_copies to how many copies of ResNet-50's weights, in 32-bit numbers, fit into the
    memory of `best`, your best device (or of your CPU, if the list shows `?` for it).
    """
    given = number_of(answer, "how many copies fit")
    best, cpu = pick_device(), pick_device("cpu")
    memory = best.memory_bytes or cpu.memory_bytes or 0
    near = partial(math.isclose, given, rel_tol=0.02)
    if near(memory / WEIGHTS_BYTES):
        return
    yield near(4 * memory / WEIGHTS_BYTES), "A 32-bit number takes four bytes, and not one."
    yield near(memory / WEIGHTS_BYTES / 8), "Both are counted in bytes: 32 bits are 4 bytes."
    yield near(WEIGHTS_BYTES / memory), "Turn it round: the memory divided by the weights."
    yield given < 0.01, "Memory and weights need the same unit: 1 GB is 1,000,000,000 bytes."
    other = cpu.memory_bytes or 0
    yield (
        near(other / WEIGHTS_BYTES),
        f"That is the CPU's memory, but your best device is {best}, with memory of its own.",
    )
    yield (
        True,
        f"{memory:,} bytes of memory do not hold {given:,.0f} times {WEIGHTS_BYTES:,} bytes, "
        "or hold more.",
    )
