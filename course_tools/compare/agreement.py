"""Do devices find the answer of the CPU, up to rounding?"""

import math
import warnings
from collections.abc import Mapping

import torch

from course_tools.compare.contestants import Contestant
from course_tools.compare.same_draws import SameDraws, seeded
from course_tools.compare.workloads import Workload, build_seeded
from course_utils.devices import as_device, wait_for
from course_utils.timing import using_threads

# The largest difference that rounding explains, as a share of the largest value: many times the
# rounding of one number (2^-24, 2^-11, 2^-9, 2^-11), since products and losses add up many.
TOLERANCE = {"fp32": 2e-5, "tf32": 1e-2, "bf16": 4e-2, "fp16": 1e-2}
CALLS_TO_CHECK = 2  # a training step shows only in its next loss whether its gradients were right


class WrongAnswer(RuntimeError):
    """A device does not compute what the CPU computes."""


def check_agreement(
    work: Workload, size: int, contestants: list[Contestant], precision: str
) -> None:
    """Compare each contestant's answers with those of one CPU thread in fp32; stop at the first
    that is wrong.

    All draw the same random numbers: from one seed, or, where a device has a generator of its own,
    by moving what the CPU draws.
    """
    cpu = Contestant(as_device("cpu"), 1)
    exact = "fp32" if "fp32" in work.precisions else precision
    right = _answers(work, size, cpu, exact)
    if not right:
        warnings.warn(
            f"{work.name!r} returns nothing, so nobody knows whether the devices agree. Let it "
            "return a result, such as its loss.",
            stacklevel=3,
        )
    for one in contestants:
        error = _largest_error(_answers(work, size, one, precision), right)
        if error > TOLERANCE[precision] and one.device.kind != "cpu":
            with SameDraws():
                error = _largest_error(_answers(work, size, one, precision), right)
        if not error <= TOLERANCE[precision]:  # NaN is wrong too
            raise WrongAnswer(
                f"{one.label} disagrees with {cpu.label} in {exact} on {work.name!r} with "
                f"{work.size_name} {size}: they differ by {error:.2g} of the largest value, but "
                f"rounding in {precision} explains only {TOLERANCE[precision]:.2g}. Nothing was "
                "timed. (NaN never agrees. Dropout does, except inside an LSTM, a GRU or an "
                "attention of a GPU, and numbers of NumPy or `random` do not: set dropout=0 for "
                "the comparison, which changes the time little, and draw with torch.)"
            )


def _answers(work: Workload, size: int, one: Contestant, precision: str) -> list[torch.Tensor]:
    answers = []
    with using_threads(one.threads):
        call = build_seeded(work, size, one.device, precision)
        for number in range(CALLS_TO_CHECK):
            with seeded(number):
                answer = call()
            found = _flatten(answer, work.name)
            wait_for(one.device)  # XLA then compiles the same programs as under the timer
            # on the CPU: MPS has no float64
            answers += [each.cpu().to(_widest(each.dtype)) for each in found]
    return answers


def _flatten(answer: object, name: str) -> list[torch.Tensor]:
    """Return the tensors and numbers of a nested answer, in order."""
    if answer is None:
        return []
    if isinstance(answer, torch.Tensor):
        return [answer.detach()]
    if isinstance(answer, bool | int | float):
        return [torch.tensor(answer)]
    if isinstance(answer, Mapping):
        answer = list(answer.values())
    if isinstance(answer, list | tuple):
        return [tensor for part in answer for tensor in _flatten(part, name)]
    raise TypeError(
        f"{name!r} answered with {type(answer).__name__}. Return a tensor or a number, or a list "
        "or a dict of them."
    )


def _widest(dtype: torch.dtype) -> torch.dtype:
    return torch.complex128 if dtype.is_complex else torch.float64


def _largest_error(answers: list[torch.Tensor], right: list[torch.Tensor]) -> float:
    if [one.shape for one in answers] != [one.shape for one in right]:
        return math.inf
    largest = 0.0
    for this, that in zip(answers, right, strict=True):
        if this.numel():
            error = (this - that).abs().max() / that.abs().max().clamp_min(1e-30)
            largest = max(largest, float(error)) if error == error else math.nan
        if math.isnan(largest):
            break
    return largest
