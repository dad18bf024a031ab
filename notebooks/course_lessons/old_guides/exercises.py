"""The exercises of lesson 9: find what is outdated, say what it meant, and translate it."""

import copy
from typing import Any

from course_lessons.exercises import Mistakes, exercise
from course_lessons.exercises.read_answer import expect, quote, whole_numbers
from course_utils.old_code import explain, modernize

SNIPPET = """\
from pytorch_lightning import Trainer
trainer = Trainer(
    accelerator="gpu",
    devices=[0, 1],
    strategy="ddp",
    replace_sampler_ddp=True,
    max_epochs=10,
    resume_from_checkpoint="last.ckpt",
)
trainer.fit(model, train_dataloaders=loader)
"""

# What is still right on the lines that look old.
STILL_RIGHT = {
    1: "`pytorch_lightning` is the older name of the same package, and it is still published.",
    2: "`Trainer(...)` itself is as it was: look at its arguments one by one.",
    3: "`accelerator` is today's way to name a device.",
    4: "`devices=[0, 1]` is right: a list names the GPUs, the first and the second.",
    5: "`strategy='ddp'` is today's way to say how the work is spread.",
    7: "`max_epochs` has had this name since Lightning 0.6.",
    10: "`train_dataloaders`, with an s, is today's name.",
}


@exercise(
    "Two of the arguments have left the Trainer. `explain` knows them: paste the snippet.",
    "`explain(ex.SNIPPET)` reads the snippet and names the lines.",
    solution="my_lines = [finding.line for finding in explain(ex.SNIPPET)]",
    right="Both raise TypeError, and neither is about a device. `explain(ex.SNIPPET).diff()` shows the new lines.",
)
def outdated(answer: Any) -> Mistakes:
    """Make a list of the numbers of the snippet's outdated lines, counting from 1."""
    lines = set(whole_numbers(answer, "a list of line numbers"))
    old = {finding.line: finding for finding in explain(SNIPPET)}
    for line in sorted(lines - old.keys()):
        yield (
            True,
            f"Line {line} runs today. {STILL_RIGHT.get(line, 'There is nothing on it that could be old.')}",
        )
    yield (
        not lines,
        "Some of its lines raise TypeError today. Which arguments have left the Trainer?",
    )
    for line in sorted(old.keys() - lines):
        near = "a sampler" if "sampler" in old[line].old else "resuming a training"
        yield True, f"What you name is outdated, and there is one more. It has to do with {near}."


@exercise(
    "What does a list mean? From which number did old Lightning count, and from which does today's?",
    "`modernize` knows all three arguments: print what it makes of them, and read its notes.",
    solution='my_arguments = {"accelerator": "tpu", "devices": [3], "precision": "bf16-true", "max_epochs": 3}',
    right="One core, the fourth, in bfloat16. In 'Four in brackets' above, the guide printed `using: [4] TPU "
    "cores` and read it as four: the output was right, and its reader was not.",
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
    tpu = answer.get("accelerator") == "tpu"
    yield (
        not tpu,
        "Nothing in it asks for a TPU. `tpu_cores` said two things: which device, and which core of it.",
    )
    devices, precision = answer.get("devices"), answer.get("precision")
    devices = list(devices) if isinstance(devices, tuple) else devices
    yield (
        devices in ([4], "4,"),
        "Old Lightning counted cores from 1, today's list from 0: [4] is the fifth one now.",
    )
    one = "`tpu_cores=[4]` named one core, the fourth, counted from 1: a list says which cores, a number how many."
    yield devices not in ([3], "3,"), f"{one} Yours has devices={quote(devices)}"
    yield (
        precision in (None, 32, "32", "32-true"),
        "That trains in 32 bits. What did `precision=16` turn on on a TPU?",
    )
    yield (
        precision == "16-true",
        "'16-true' sets a variable that torch_xla 2.9 does not read: it trains in 32 bits.",
    )
    mixed = f"Today's plugin for TPUs refuses precision={precision!r}: no mixed precision."
    yield precision in (16, "16", "16-mixed", "bf16", "bf16-mixed"), mixed
    yield (
        precision != "bf16-true",
        f"`precision=16` made every float a bfloat16, but yours is {quote(precision)}",
    )
    epochs = answer.get("max_epochs")
    yield epochs != 3, "`max_epochs=3` has got lost. Without it Lightning trains for 1,000 epochs."
    others = sorted(map(str, answer.keys() - {"accelerator", "devices", "precision", "max_epochs"}))
    yield others, f"The old Trainer was not told {', '.join(others)}. Omit it."


CASES: tuple[dict[str, Any], ...] = (
    {"gpus": 2, "max_epochs": 3},
    {"gpus": [2], "max_epochs": 3},
    {"gpus": -1, "distributed_backend": "ddp"},
    {"gpus": 0, "max_epochs": 3},
    {"gpus": None},
)


@exercise(
    "Three cases: a number of GPUs, a list of GPUs, and none. What did the old Trainer use when it had none?",
    "Copy it and take `gpus` out: then accelerator 'gpu' and `devices`, or 'cpu' for 0 and None. `distributed_backend` "
    "becomes `strategy`, where there is one.",
    solution="""
        def my_translation(old):
            new = {name: value for name, value in old.items() if name not in ("gpus", "distributed_backend")}
            if "distributed_backend" in old:
                new["strategy"] = old["distributed_backend"]
            if old["gpus"]:
                return {**new, "accelerator": "gpu", "devices": old["gpus"]}
            return {**new, "accelerator": "cpu"}
    """,
    right="Note the last case: with no GPU an old Trainer used the CPU. Today's, told nothing, takes the best device.",
)
def gpus(answer: Any) -> Mistakes:
    """Write `my_translation(old)`: from a dictionary with `gpus`, and perhaps `distributed_backend`
    and arguments that are still right, make a new one for today's Trainer that means the same, and
    leave `old` as it is."""
    for case in CASES:
        old = copy.deepcopy(case)
        new = answer(old)
        new = getattr(new, "kwargs", new)  # of what modernize returns
        expect(new, dict, f"a dictionary, from {case}")
        yield (
            old != case,
            "Your function changes the dictionary that it is given: the caller loses the old one.",
        )
        yield from _check_translation(case, dict(new), modernize(case).kwargs)


def _check_translation(old: dict, new: dict, wanted: dict) -> Mistakes:
    for name in ("gpus", "distributed_backend"):
        yield (
            name in new,
            f"{old}: `{name}` is still there, and today's Trainer raises TypeError for it.",
        )
    lost = ", ".join(wanted.keys() - new.keys() - {"accelerator", "devices"})
    yield (
        lost,
        f"{old}: `{lost}` is missing. What is still right stays, and a backend is a strategy now.",
    )
    accelerator, devices = new.pop("accelerator", None), new.pop("devices", None)
    devices = list(devices) if isinstance(devices, tuple) else devices
    if wanted["accelerator"] == "cpu":
        not_cpu = accelerator != "cpu" or devices not in (None, 1, "auto")
        meant = f"{old}: no GPU was asked for, so it meant the CPU, where today's Trainer takes the best device."
        yield (
            not_cpu,
            f"{meant} Yours has accelerator={accelerator!r}, devices={quote(devices)}. (A CPU has one.)",
        )
    else:
        not_gpu = accelerator not in ("gpu", "cuda")
        yield not_gpu, f"{old}: it asked for GPUs, but yours has accelerator={accelerator!r}."
        count = wanted["devices"]
        as_text = isinstance(count, int) and devices in (
            str(count),
            "auto" if count == -1 else None,
        )
        meant = f"{old}: a list says which GPUs, a number how many, and -1 is all of them."
        yield devices != count and not as_text, f"{meant} Yours has devices={quote(repr(devices))}"
    rest = {name: value for name, value in wanted.items() if name not in ("accelerator", "devices")}
    # the default
    new = {name: value for name, value in new.items() if (name, value) != ("strategy", "auto")}
    yield new != rest, f"{old} is {wanted} today, but yours has {quote(new)} beside the device."
