"""The exercises of lesson 9: a decision on the reader's own Darts model, and an old Trainer."""

from typing import Any

from course_lessons.darts.pictures import FACTOR
from course_lessons.exercises.frame import Mistakes, exercise
from course_lessons.exercises.read_answer import Wrong, expect, number_of, quote

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
    if len(found) != 3:
        raise Wrong(f"Return three things, but you return {len(found)}.")
    here, there = (_seconds(each) for each in found[:2])
    made = found[2]
    yield here <= 0 or there <= 0, "A step takes some time: both numbers are seconds, above 0."
    yield (
        here > 1000 or there > 1000,
        "A step of more than 1,000 seconds: are these milliseconds? Return seconds.",
    )
    yield (
        made not in CHOICES,
        f'Choose one of "stay", "rent" and "measure", but your choice is {quote(made)}',
    )
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
    "`modernize` in course_utils.old_code.trainer_arguments knows all three arguments: print what "
    "it makes of them, and read its notes.",
    solution="""
        my_arguments = {
            "accelerator": "tpu",
            "devices": [3],
            "precision": "bf16-true",
            "max_epochs": 3,
        }
    """,
    right="One core, the fourth, in bfloat16. The guide printed `using: [4] TPU cores` and called "
    "it four TPUs: the output was right, and its reader was not.",
)
def core(answer: Any) -> Mistakes:
    """Translate `Trainer(tpu_cores=[4], precision=16, max_epochs=3)` of Lightning 1: a dictionary
    of today's arguments."""
    answer = getattr(answer, "kwargs", answer)  # of what modernize returns
    expect(answer, dict, "a dictionary of arguments for today's Trainer")
    for name in ("tpu_cores", "num_tpu_cores", "gpus"):
        yield (
            name in answer,
            f"`{name}` has left the Trainer, and raises TypeError. Two arguments say it today.",
        )
    yield (
        answer.get("accelerator") != "tpu",
        "Nothing in it asks for a TPU. `tpu_cores` said two things: which device, and which core.",
    )
    yield from _check_core(answer.get("devices"))
    yield from _check_precision(answer.get("precision"))
    yield (
        answer.get("max_epochs") != 3,
        "`max_epochs=3` has got lost. Without it Lightning trains for 1,000 epochs.",
    )
    others = sorted(map(str, answer.keys() - {"accelerator", "devices", "precision", "max_epochs"}))
    yield others, f"The old Trainer did not have {', '.join(others)}. Omit it."


def _check_core(devices: Any) -> Mistakes:
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


def _check_precision(precision: Any) -> Mistakes:
    yield (
        precision in (None, 32, "32", "32-true"),
        "That trains in 32 bits. What did `precision=16` turn on on a TPU?",
    )
    yield (
        precision == "16-true",
        "'16-true' sets a variable that torch_xla 2.9 does not read: it trains in 32 bits.",
    )
    yield (
        precision in (16, "16", "16-mixed", "bf16", "bf16-mixed"),
        f"Today's plugin for TPUs refuses precision={precision!r}: no mixed precision.",
    )
    yield (
        precision != "bf16-true",
        f"`precision=16` made every float a bfloat16, but yours is {quote(precision)}",
    )
