"""The exercises of lesson 10: a decision on the reader's own Darts model, and an old Trainer."""

from typing import Any

from course_lessons.exercises.frame import Mistakes, exercise
from course_lessons.exercises.read_answer import expect, number_of, quote

CHOICES = ("stay", "rent", "measure")


@exercise(
    "Compare the time here with both ends of the interval. If it lies between them, the estimate "
    "cannot say which is faster.",
    "`step_s` measures a step here, and `estimate_s` estimates both ends of a GPU's. Add "
    "`making_s(model)` to both ends: the CPU makes the batch in any case.",
    solution="""
        def my_choice():
            here, own = step_s(64, accelerator="cpu")  # with your own model in step_s
            least, most = (making_s(own) + end for end in estimate_s(own, 64))
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
    "What does a list mean? And from which number did old Lightning count, from which today's?",
    "`modernize` in course_tools.old_code.trainer_arguments knows both arguments: print what it "
    "makes of them, and read its notes.",
    solution="""
        my_arguments = {"accelerator": "tpu", "devices": [3], "max_epochs": 3}
    """,
    right="One core, the fourth. The guide printed `using: [4] TPU cores` and called it four TPUs: "
    "the output was right, and its reader was not.",
)
def core(answer: Any) -> Mistakes:
    """Translate `Trainer(tpu_cores=[4], max_epochs=3)` of Lightning 1: a dictionary of today's
    arguments.
    """
    answer = getattr(answer, "kwargs", answer)  # of what modernize returns
    expect(answer, dict, "a dictionary of arguments for today's Trainer")
    for name in ("tpu_cores", "num_tpu_cores"):
        yield (
            name in answer,
            f"`{name}` has left the Trainer, and raises TypeError. Two arguments say it today.",
        )
    yield (
        answer.get("accelerator") != "tpu",
        "Nothing in it asks for a TPU. `tpu_cores` said two things: which device, and which core.",
    )
    devices = answer.get("devices")
    devices = list(devices) if isinstance(devices, tuple) else devices
    yield (
        devices in ([4], "4,"),
        "Old Lightning counted cores from 1, today's list from 0: [4] is the fifth one now.",
    )
    yield (
        devices not in ([3], "3,"),
        "`tpu_cores=[4]` named one core, the fourth, counted from 1: a list says which cores, a "
        f"number how many. Yours has devices={quote(devices)}",
    )
    yield (
        answer.get("max_epochs") != 3,
        "`max_epochs=3` has got lost. Without it Lightning trains for 1,000 epochs.",
    )
