"""The exercises of lesson 0: what a device's name promises, and what proves that a device works."""

from collections.abc import Callable
from typing import Any

import torch

from course_utils.devices import Device, DeviceList, pick_device
from course_utils.doctor import Diagnosis
from course_utils.doctor.evidence import Finding
from course_utils.exercises import exercise
from course_utils.exercises.answers import Wrong, expect, expect_function, quote, refuse, truth_of

OUTCOMES = ("a device", "not here", "no such kind")
WHY = {
    ("cpu:0", "not here"): "Every machine has a CPU, and 'cpu:0' is the first one.",
    ("cpu:0", "no such kind"): "'cpu:0' is a kind and an index, counted from 0. The CPU may have one too.",
    ("gpu", "a device"): "No kind of device is called 'gpu', and pick_device does not guess which one you mean.",
    ("gpu", "not here"): "'gpu' is not missing on this machine: it names no kind of device on any machine.",
    ("cuda:99", "a device"): "'cuda:99' is not here, and pick_device never takes another device in its place.",
    ("cuda:99", "no such kind"): "'cuda:99' is a good name, of the hundredth GPU. What is missing is the GPU.",
}


@exercise(
    "A name is a kind, and an index if you like. Which of the three has a kind that the card of section 2 knows?",
    "Kinds are cpu, cuda, mps, xpu, xla and tpu. A missing device is another error than a bad name.",
    solution='my_outcomes = {"cpu:0": "a device", "gpu": "no such kind", "cuda:99": "not here"}',
    right="A bad name is a ValueError: correct it. A missing device is a RuntimeError: ask the doctor.",
)
def names(answer: Any) -> None:
    """Say what pick_device makes of each name: "a device", or an error that says "not here" or "no such kind"."""
    expect(answer, dict, "a dict with an outcome for each name")
    for name in ("cpu:0", "gpu", "cuda:99"):
        said, true = answer.get(name, ...), _outcome(name)
        if said not in OUTCOMES:
            raise Wrong(f"Say of {name!r} one of {', '.join(map(repr, OUTCOMES))}. Your dict has {quote(said)}.")
        refuse({WHY.get((name, said), f"On this machine, {name!r} is {true!r}."): said != true})


def _outcome(name: str) -> str:
    try:
        pick_device(name)
    except (ValueError, RuntimeError) as error:
        return "no such kind" if isinstance(error, ValueError) else "not here"
    return "a device"


FIRST_GPU, SECOND_GPU = Device("cuda", 0, "a GPU"), Device("cuda", 1, "another GPU")
REHEARSAL, CPU = Device("xla", 0, "a rehearsal", rehearsal=True), Device("cpu", 0, "a CPU")
HERE = (REHEARSAL, FIRST_GPU, SECOND_GPU, CPU)


@exercise(
    "str(device) is a device's name. Three cases: nothing was asked for, it is in the list, it is not in the list.",
    "After a loop `for device in here` that returns what it finds, the last line is "
    '`raise RuntimeError(f"{asked} was asked for, but here are ...")`.',
    solution="""
        def my_choose(asked, here):
            for device in here:
                if str(device) == asked or (asked is None and not device.rehearsal):
                    return device
            raise RuntimeError(f"{asked} was asked for, but this machine has {[str(device) for device in here]}")
    """,
    right="A missing device stops the program at once, and not after a night of slow training. Compare with section 3.",
)
def choose(answer: Any) -> None:
    """Write my_choose(asked, here): the device of that name in the list, an error when it is missing, and for None the
    first device that is no rehearsal.
    """
    expect_function(answer, "asked", "here")
    try:
        second = answer("cuda:1", DeviceList(HERE))
    except (RuntimeError, ValueError, LookupError, StopIteration) as error:
        raised = f"{type(error).__name__}: {quote(error)}"
        raise Wrong(f"'cuda:1' is in `here`, which is not this machine, but your function raised {raised}.") from None
    by_name = isinstance(second, str | torch.device)
    refuse({"Return the device from the list, not its name: the caller also wants to see its memory.": by_name})
    refuse({f"Asked for 'cuda:1', you returned {quote(second)}. Compare the whole name.": second != SECOND_GPU})
    _refuses_what_is_missing(answer)
    best, only = answer(None, DeviceList(HERE)), DeviceList([CPU])
    mistakes = {
        "Asked for None, your function took the rehearsal, the CPU playing a TPU: skip it.": best == REHEARSAL,
        f"For None, take the first device that is no rehearsal, not {quote(best)}.": best != FIRST_GPU,
    }
    refuse(mistakes)
    lost = answer(None, DeviceList([REHEARSAL, CPU])) != CPU or answer("cpu", only) != CPU
    refuse({"On a machine with no GPU at all your function does not find the CPU.": lost})


def _refuses_what_is_missing(choose: Callable) -> None:
    try:
        instead = choose("cuda:7", DeviceList(HERE))
    except Exception as error:
        said = str(error)
    else:
        refuse({"'cuda:7' is missing, and you returned None: the error comes later and elsewhere.": instead is None})
        raise Wrong(f"'cuda:7' is missing, and your function took {quote(instead)} in silence. Raise an error.")
    unnamed = any(str(device) not in said and device.name not in said for device in (SECOND_GPU, CPU))
    mistakes = {
        f"Your error says {quote(said)!r}, but not what was asked for: put 'cuda:7' into it.": "cuda:7" not in said,
        f"Your error says {quote(said)!r}, but not what is here: name the devices one could ask for.": unnamed,
    }
    refuse(mistakes)


@exercise(
    "Who else can compute the same product? And what does the P100 of section 6 do when it gets some work?",
    "Inside `try`, compare `multiply(a, b)` with `a @ b`, number by number. Then `except RuntimeError: return False`.",
    solution="""
        def my_works(multiply):
            a = torch.arange(16.0).reshape(4, 4)
            try:
                return torch.equal(multiply(a, a + 1), a @ (a + 1))
            except RuntimeError:
                return False
    """,
    right="That is what the doctor does: a kernel, and a comparison. It says nothing about speed: right can be slow.",
)
def works(answer: Any) -> None:
    """Write my_works(multiply): True if a processor works, else False, where multiply(a, b) is its product."""
    expect_function(answer, "multiply")
    given: list = []

    def says_yes(fault: Callable) -> bool:
        def multiply(a: Any, b: Any) -> torch.Tensor:
            given.extend([a, b])
            return fault(torch.as_tensor(a @ b))

        return truth_of(answer(multiply))

    said = says_yes(lambda product: product)
    refuse({'You answered without giving the processor any work. That is only "available".': not given})
    refuse({"This processor is right in every number, and you say no. Compare with the CPU's a @ b.": not said})
    try:
        fooled = says_yes(_broken)
    except RuntimeError:
        raise Wrong("A processor that raises an error, as the P100 does, does not work: the answer is False.") from None
    refuse({"This processor raised an error instead of multiplying, and you say that it works.": fooled})
    zeros = all(bool((torch.as_tensor(matrix) == 0).all()) for matrix in given)
    refuse({"You multiply zeros. A processor that does nothing at all may pass that: use numbers that differ.": zeros})
    for message, fault in FAULTS.items():
        refuse({message: says_yes(fault)})


def _broken(product: torch.Tensor) -> torch.Tensor:
    raise RuntimeError("CUDA error: no kernel image is available for execution on the device")


def _last_is_off(product: torch.Tensor) -> torch.Tensor:
    return torch.cat([product.flatten()[:-1], product.flatten()[-1:] + 1]).reshape(product.shape)


FAULTS: dict[str, Callable] = {
    "This processor gives 7 for every number. Yours only looked whether it answers.": lambda product: product * 0 + 7,
    "Only the last number of this product is wrong, and you say that it works. Compare all of them.": _last_is_off,
    "This processor puts the right numbers in the wrong places. Compare number by number (a sum does not), and "
    "multiply matrices whose numbers differ.": lambda product: product.flatten().roll(1).reshape(product.shape),
}
FINDINGS = (
    Finding("cpu", True, "works", "An addition ran.", ""),
    Finding("cuda", False, "driver-too-old", "The driver is too old.", "Update the driver."),
    Finding("mps", False, "other-platform", "This is no Mac.", ""),
    Finding("xla", True, "rehearsal", "XLA compiles for this CPU.", ""),
)


@exercise(
    "Every finding in `report.findings` has a `family`, says whether it is `usable`, and names a `cause`.",
    "One line with a list comprehension: `[(f.family, f.cause) for f in report.findings if ...]`.",
    solution="""
        def my_missing(report):
            return [(finding.family, finding.cause) for finding in report.findings if not finding.usable]
    """,
    right="Now give it this machine's report. Causes such as no-hardware and other-platform are about the machine; "
    "driver-too-old, cpu-only-build or hidden are about software, and have a fix.",
)
def missing(answer: Any) -> None:
    """Write my_missing(report): from a doctor's report, the families that do not work, as pairs (family, cause)."""
    expect_function(answer, "report")
    found = answer(Diagnosis(place="computer", torch="torch 2.9.0", devices=(), findings=FINDINGS, seconds=1.0))
    expect(found, list | tuple | set | dict, "what your function returned: a list of pairs (family, cause)")
    pairs = list(found.items() if isinstance(found, dict) else found)
    odd = any(not isinstance(pair, list | tuple) or len(pair) != 2 for pair in pairs)
    refuse({f"Each entry should be a pair such as ('cuda', 'driver-too-old'), but yours are {quote(pairs)}.": odd})
    families = {family for family, _ in pairs}
    right = sorted(map(tuple, pairs)) == [("cuda", "driver-too-old"), ("mps", "other-platform")]
    mistakes = {
        "These are the families that do work. Keep those that are not usable.": families == {"cpu", "xla"},
        "XLA's cause is 'rehearsal', and it is usable.": families == {"cuda", "mps", "xla"},
        "The CPU works here, and your list has it. Ask each finding if it is usable.": "cpu" in families,
        f"Here CUDA and MPS do not work, each for its cause, but you return {quote(pairs)}.": not right,
    }
    refuse(mistakes)
