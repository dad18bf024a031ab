"""The exercise of lesson 0: what a faster processor buys."""

from math import isclose
from typing import Any

from course_lessons.exercises.frame import Mistakes, exercise
from course_lessons.exercises.read_answer import number_of


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
            f"{case}: {given:g} is the time after divided by the time before. Turn it around.",
        )
        # 9.6 is right as well
        wrong = not isclose(given, before_s / after_s, rel_tol=0.005)
        yield wrong, f"{case}, the job does not become {given:g} times as fast."
