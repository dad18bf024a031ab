"""The exercises of lesson 7: find what is outdated, say what it meant, and translate it."""

from course_utils.exercises.exercise import Wrong, exercise, expect, expect_function, quote
from course_utils.exercises.whole_numbers import whole_numbers

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
    7: "`max_epochs` has never changed.",
    10: "`train_dataloaders`, with an s, is today's name.",
}


@exercise(
    hints=(
        "Two of the arguments have left the Trainer. The section 'Other arguments that have gone' has both.",
        "`explain_snippet(ex.SNIPPET)` reads the snippet and names the lines.",
    ),
    solution="my_lines = [finding.line for finding in explain_snippet(ex.SNIPPET)]",
)
def outdated(answer):
    """Say which lines of the snippet are outdated: a list of their numbers, counted from 1."""
    from course_utils.old_guides import explain_snippet

    lines = set(whole_numbers(answer, "a list of line numbers"))
    old = {finding.line: finding for finding in explain_snippet(SNIPPET)}
    for line in sorted(lines - old.keys()):
        why = STILL_RIGHT.get(line, "There is nothing on it that could be old.")
        raise Wrong(f"Line {line} runs today. {why}")
    if not lines:
        raise Wrong("Some of its lines raise TypeError today. Which arguments have left the Trainer?")
    for line in sorted(old.keys() - lines):
        near = "sampler" if "sampler" in old[line].old else "training that goes on"
        raise Wrong(f"What you name is outdated, and there is one more. It has to do with a {near}.")
    return (
        "Both raise TypeError, and neither is about a device. One was renamed, and the other moved to `fit`: the cell "
        "under 'Other arguments that have gone' has translated both."
    )


@exercise(
    hints=(
        "What does a list mean, from where did old Lightning count, and from where does today's?",
        "`modernize` knows all four arguments: print what it makes of them, and read its notes.",
    ),
    solution="""
        my_arguments = {"accelerator": "tpu", "devices": [3], "precision": "bf16-true", "max_epochs": 3}
    """,
)
def core(answer):
    """Say which arguments, as a dictionary, `Trainer(tpu_cores=[4], precision=16, max_epochs=3)` of Lightning 1 has
    today."""
    answer = getattr(answer, "kwargs", answer)  # of what modernize returns
    expect(answer, dict, "a dictionary of arguments for today's Trainer")
    for name in ("tpu_cores", "num_tpu_cores", "gpus"):
        if name in answer:
            raise Wrong(f"`{name}` has left the Trainer, so this raises TypeError. Two arguments say it today.")
    if answer.get("accelerator") != "tpu":
        raise Wrong("Nothing in it asks for a TPU. `tpu_cores` said two things: which device, and which core of it.")
    _check_core(answer.get("devices"))
    _check_precision(answer.get("precision"))
    if answer.get("max_epochs") != 3:
        raise Wrong("`max_epochs=3` has got lost. It is as it was, and without it Lightning trains for 1,000 epochs.")
    if others := answer.keys() - {"accelerator", "devices", "precision", "max_epochs"}:
        raise Wrong(f"The old Trainer was not told {', '.join(map(str, sorted(others, key=str)))}. Leave it away.")
    return (
        "One core, the fourth, in bfloat16. Look at the row '`[4]` is four TPUs' above: the guide printed `using: [4] "
        "TPU cores` and read it as four. The output was right, and its reader was not."
    )


def _check_core(devices: object) -> None:
    if isinstance(devices, tuple):
        devices = list(devices)
    if devices in (4, "4", [0, 1, 2, 3], [1, 2, 3, 4]):
        raise Wrong("`tpu_cores=[4]` never meant four cores. A number counts them, a list names one.")
    if devices in ([4], "4,"):
        raise Wrong("Old Lightning counted cores from 1, and today's list counts from 0: [4] is the fifth one now.")
    if devices in (None, "auto", 8, -1):
        raise Wrong("That takes all cores. `tpu_cores=[4]` was one of them.")
    if devices in (1, "1", 3, "3"):
        raise Wrong("A number says how many, and the list said which core. Keep it a list.")
    if devices not in ([3], "3,"):
        raise Wrong(f"The old list named core number 4, counted from 1, but yours is devices={quote(devices)}")


def _check_precision(precision: object) -> None:
    if precision in (None, 32, "32", "32-true"):
        raise Wrong("That trains in 32 bits, but `precision=16` was there. What did it turn on on a TPU?")
    if precision == "16-true":
        raise Wrong("'16-true' sets a variable that nobody reads: it trains in 32 bits. Look at the three cases above.")
    if precision in (16, "16", "16-mixed", "bf16", "bf16-mixed"):
        raise Wrong(f"Today's plugin for TPUs refuses precision={precision!r}: it takes no mixed precision.")
    if precision != "bf16-true":
        raise Wrong(f"`precision=16` made every float of a TPU a bfloat16, but yours is {quote(precision)}")


CASES = (
    {"gpus": 2, "max_epochs": 3},
    {"gpus": [2], "max_epochs": 3},
    {"gpus": -1, "distributed_backend": "ddp"},
    {"gpus": 0, "max_epochs": 3},
    {"gpus": None},
)


@exercise(
    hints=(
        "Three cases: a number of GPUs, a list of GPUs, and none. What did the old Trainer use when it had none?",
        "Copy the dictionary and take `gpus` out. If it was there, put in accelerator 'gpu' and `devices`; if it was 0 "
        "or None, accelerator 'cpu'. `distributed_backend` becomes `strategy`, where there is one.",
    ),
    solution="""
        def my_translation(old):
            new = {name: value for name, value in old.items() if name not in ("gpus", "distributed_backend")}
            if "distributed_backend" in old:
                new["strategy"] = old["distributed_backend"]
            if old["gpus"]:
                return {**new, "accelerator": "gpu", "devices": old["gpus"]}
            return {**new, "accelerator": "cpu"}
    """,
)
def gpus(answer):
    """Write `my_translation(old)`: from a dictionary with `gpus`, and perhaps `distributed_backend` and arguments that
    are still right, make a new one for today's Trainer that means the same, and leave `old` as it is."""
    from course_utils.old_guides import modernize

    expect_function(answer, "old")
    for case in CASES:
        old = {name: list(value) if isinstance(value, list) else value for name, value in case.items()}
        new = answer(old)
        new = getattr(new, "kwargs", new)  # of what modernize returns
        expect(new, dict, f"a dictionary, from {case}")
        if old != case:
            raise Wrong("Your function changes the dictionary that it is given, so the caller loses the old arguments.")
        _check_translation(case, new, modernize(case).kwargs)
    return (
        "Your function means what `modernize` means, for all that `gpus` could be here. Note the last case: an old "
        "Trainer with no GPU used the CPU, and today's, told nothing, takes the best device there is."
    )


def _check_translation(old: dict, new: dict, wanted: dict) -> None:
    for name in ("gpus", "distributed_backend"):
        if name in new:
            raise Wrong(f"{old}: `{name}` is still there, and today's Trainer raises TypeError for it.")
    if lost := wanted.keys() - new.keys() - {"accelerator", "devices"}:
        raise Wrong(
            f"{old}: `{', '.join(lost)}` is missing. What is still right stays, and a backend is a strategy now."
        )
    if wanted["accelerator"] == "cpu":
        _check_cpu(old, new)
        new = {name: value for name, value in new.items() if name != "devices"}
    elif new.get("accelerator") not in ("gpu", "cuda"):
        raise Wrong(f"{old}: it asked for GPUs, but yours has accelerator={new.get('accelerator')!r}.")
    else:
        _check_devices(old, new.get("devices"), wanted["devices"])
        new = {**new, "accelerator": "gpu", "devices": wanted["devices"]}
    if new != wanted:
        raise Wrong(f"{old} is {wanted} today, but yours is {quote(new)}")


def _check_cpu(old: dict, new: dict) -> None:
    if new.get("accelerator") in (None, "auto"):
        raise Wrong(f"{old}: an old Trainer without GPUs used the CPU. Today's, told nothing, takes the best device.")
    if new["accelerator"] != "cpu" or new.get("devices", 1) not in (1, "auto"):
        raise Wrong(f"{old}: no GPU was asked for, so it meant the CPU, but yours is {quote(new)}")


def _check_devices(old: dict, devices: object, wanted: object) -> None:
    if isinstance(devices, tuple):
        devices = list(devices)
    if devices == wanted or (wanted == -1 and devices == "auto"):
        return
    if isinstance(wanted, list):
        raise Wrong(f"{old}: the list says which GPUs, and not how many. Yours has devices={quote(devices)}")
    raise Wrong(f"{old}: the number says how many GPUs, -1 all. Yours has devices={quote(devices)}")
