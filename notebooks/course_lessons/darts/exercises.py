"""The exercises of lesson 10: a decision on the reader's own Darts model, and an old Trainer."""

from typing import Any

from course_lessons.darts.pictures import FACTOR
from course_lessons.exercises.frame import Mistakes, exercise
from course_lessons.exercises.read_answer import expect, number_of, quote

CHOICES = ("stay", "rent", "measure")


@exercise(
    "Divide the time here by the time there, and compare the ratio with the factor by which an "
    f"estimate may be off, {FACTOR}. Both times are of one training step with the same batch.",
    "`here = measured_s(model, batch)` and `there = estimated(model, batch, a100).total_s`, with "
    f"your fitted Darts model and your batch. Rent above {FACTOR}, stay below 1/{FACTOR}; in "
    "between the estimate cannot say: measure.",
    solution=f"""
        def my_choice():
            own = nhits(many_series(20), batch_size=64)  # put your own fitted model here
            here = measured_s(own, batch=64)
            there = estimated(own, 64, find_chip("A100")).total_s
            if here / there > {FACTOR}:
                return here, there, "rent"
            return here, there, "stay" if here / there < 1 / {FACTOR} else "measure"
    """,
    right="Now multiply both by the number of steps in your training. A large factor on a training "
    "of two minutes is still two minutes, and the data have to keep up, too.",
)
def choice(answer: Any) -> Mistakes:
    """Write `my_choice()`: the seconds of a step of your own Darts model, measured here and
    estimated for a GPU, and "stay", "rent" or "measure"."""
    found = answer()
    expect(found, (tuple, list), "three things: seconds here, seconds there, and your choice")
    yield len(found) != 3, f"Return three things, but you return {len(found)}."
    here, there = (_seconds(each) for each in found[:2])
    made = found[2]
    yield min(here, there) <= 0, "A step takes some time: both numbers are seconds, above 0."
    yield made not in CHOICES, f'Choose one of "stay", "rent" and "measure", not {quote(made)}'
    times = here / there
    ratio = f"The GPU is estimated at {times:.2g} times the speed of your CPU"
    if times > FACTOR:
        yield made == "stay", f"{ratio}: even if that is off by {FACTOR}, the GPU is faster."
        yield made == "measure", f"{ratio}: more than the factor {FACTOR}, so it is decided."
    elif times < 1 / FACTOR:
        yield made == "rent", f"{ratio}: even if that is off by {FACTOR}, your CPU is faster."
        yield made == "measure", f"{ratio}: less than 1/{FACTOR}, so it is decided."
    else:
        yield (
            made != "measure",
            f"{ratio}, and that may be off by {FACTOR} either way: the estimate does not decide. "
            "Rent for ten minutes and measure.",
        )


def _seconds(time: Any) -> float:
    """Return the seconds of a Timing, of a StepTime, or of a number."""
    for name in ("median_s", "total_s"):
        time = getattr(time, name, time)
    return number_of(time, "the seconds of a step")


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
