"""The exercises of lesson 10: a decision on the reader's own Darts model, and a stride."""

from typing import Any

from course_lessons.exercises.frame import Mistakes, exercise
from course_lessons.exercises.read_answer import Wrong, expect, number_of, quote

CHOICES = ("stay", "rent", "measure")
DAY, WEEK = 24, 168  # hours


@exercise(
    "Compare the time here with both ends of the interval. If it lies between them, the estimate "
    "cannot say which is faster.",
    "`step_s` measures a step here and what stays on the CPU, and `estimate_s` estimates both "
    "ends of the network's time on a GPU. What stays on the CPU is in both ends.",
    solution="""
        def my_choice():
            here, around, own = step_s(64, accelerator="cpu")  # with your own model in step_s
            least, most = (around + end for end in estimate_s(own, 64))
            if here > most:
                return here, least, most, "rent"
            return here, least, most, "stay" if here < least else "measure"
    """,
    right="Now multiply by the number of steps in your training run. Ten times as fast saves "
    "nothing worth having if the whole run takes two minutes.",
)
def choice(answer: Any) -> Mistakes:
    """Write `my_choice()`: the seconds of a step of your own Darts model here, the least and the
    most that it takes with a GPU, and "stay", "rent" or "measure"."""
    found = answer()
    expect(found, (tuple, list), "four things: seconds here, least, most, and your choice")
    yield len(found) != 4, f"Return four things, but you return {len(found)}."
    here, least, most = (number_of(each, "the seconds of a step") for each in found[:3])
    made = found[3]
    yield min(here, least) <= 0, "A step takes some time: all three are seconds, above 0."
    yield least > most, "The least comes before the most."
    yield made not in CHOICES, f'Choose one of "stay", "rent" and "measure", not {quote(made)}'
    if here > most:
        yield made != "rent", "Even at the slow end of its interval the GPU is faster."
    elif here < least:
        yield made != "stay", "Even at the fast end of its interval the GPU is slower."
    else:
        yield (
            made != "measure",
            "Your time lies inside the interval, so it is too close to call. Run the same cell on "
            "a free GPU for ten minutes.",
        )


@exercise(
    "At which hours of the week do the windows begin? Write down the first few for a stride of 24.",
    "The windows begin at the multiples of the stride, counted around the week. They miss hours if "
    "the stride and 168 have a common divisor.",
    solution="""
        my_stride = 5
    """,
    right="Your stride and 168 have no common divisor, so the windows begin at every hour of the "
    "week. A stride still leaves windows out, so check the error on days that you held back.",
)
def stride(answer: Any) -> Mistakes:
    """Choose a `stride` of at least 5 for hourly data with a day and a week in them."""
    step = number_of(answer, "a stride")
    if step != int(step) or step < 1:
        raise Wrong(f"A stride is a whole number of hours, not {quote(answer)}")
    yield step < 5, "That leaves out too little: choose a stride of at least 5."
    yield step > WEEK, "A stride of more than a week skips whole weeks: choose a shorter one."
    starts = {hour * int(step) % WEEK for hour in range(WEEK)}
    yield (
        len({start % DAY for start in starts}) == 1,
        "All windows begin at the same hour of the day, so the network never learns the others.",
    )
    yield (
        len(starts) < WEEK,
        f"The windows begin at only {len(starts)} of the {WEEK} hours of a week.",
    )
