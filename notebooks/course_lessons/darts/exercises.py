"""The exercises of lesson 8: the device of a Darts model, what a MAPE compares, and weights that
come back.

Nothing here needs Darts.
"""

import math
from typing import Any

import torch
from torch import nn

from course_lessons.darts import DartsNetwork
from course_lessons.exercises.frame import Mistakes, exercise
from course_lessons.exercises.read_answer import Wrong, expect, number_of, quote
from course_utils.old_code.trainer_arguments import translate, written


@exercise(
    "Darts hands this dictionary to a Lightning Trainer as it is. Which argument of the "
    "Trainer names the device?",
    "Its `accelerator`. Say 'cpu', or let `trainer_kwargs` of this course say it.",
    solution='my_kwargs = {"accelerator": "cpu"}',
    right="The model stays on the CPU. Compare with `RNNModel(**GUIDE).trainer_params` in the "
    "section 'By default', "
    "which names no accelerator: with eight GPUs it was the CUDAAccelerator (on a Mac the "
    "MPSAccelerator).",
)
def device(answer: Any) -> Mistakes:
    """Make the `pl_trainer_kwargs` with which a Darts model trains on the CPU, even on a machine
    with eight GPUs.
    """
    expect(answer, dict, "a dictionary of arguments for Lightning's Trainer")
    modern = translate(answer)
    for name, why in modern.refused.items():
        argument = written(name, answer[name])
        yield (
            True,
            f"The Trainer would raise TypeError: {argument}: {why} A device is its `accelerator`.",
        )
    for note in modern.notes:
        old = (
            f"`{note.old}` is of an older Lightning, and fails when the model is trained. "
            f"{note.why}"
        )
        yield "accelerator" not in note.old, old
    accelerator, count = answer.get("accelerator"), answer.get("devices", "auto")
    yield (
        accelerator is None,
        "Nothing in it names a device, so Lightning's own default, 'auto', takes the GPUs.",
    )
    yield (
        accelerator == "auto",
        "'auto' is what holds when you say nothing: the best there is. Here that is the GPUs.",
    )
    yield (
        accelerator in ("gpu", "cuda"),
        "That asks for the GPUs, however many `devices` are named. Name the CPU.",
    )
    made_by, name = type(accelerator).__module__.partition(".")[0], type(accelerator).__name__
    yield (
        made_by == "lightning",
        "It comes from `lightning.pytorch`. Darts needs the one from `pytorch_lightning`.",
    )
    is_cpu = accelerator == "cpu" or (made_by, name) == ("pytorch_lightning", "CPUAccelerator")
    yield (
        not is_cpu,
        f"Lightning wants the text 'cpu', but your accelerator is of type {name}: "
        f"{quote(accelerator)}",
    )
    counts = count == "auto" or (str(count).isdigit() and int(count) > 0)
    yield (
        not counts,
        f"On a CPU `devices` is how many processes, at least 1, but yours is {quote(count)}",
    )


@exercise(
    "For each month: how far off is the forecast, as a share of what? Then take the mean, in "
    "percent.",
    "Divide the absolute difference of each month by the true value of that month.",
    solution="""
        def my_mape(forecast, truth):
            return 100 * ((forecast - truth).abs() / truth).mean()
    """,
    right="Each error is a share of that month's truth, so the unit does not matter, but the "
    "zero point does. On "
    "the model's scale, from 0 to 1, the shares differ: so the lesson calls "
    "`inverse_transform` before `mape`.",
)
def mape(answer: Any) -> Mistakes:
    """Write `my_mape(forecast, truth)`: the mean absolute percentage error of two tensors of
    monthly passengers.
    """
    forecast, truth = torch.tensor([[420.0, 350, 500, 90], [400, 400, 400, 100]], device="cpu")
    found = number_of(answer(forecast.clone(), truth.clone()), "the error in percent")
    off, share = forecast - truth, (forecast - truth) / truth
    mistakes = {
        share.abs().mean(): "That is a share of 1. In percent it is a hundred times as much.",
        100 * share.mean(): "Months that are too high and too low cancel each other out: take "
        "absolute values first.",
        100
        * (off / forecast)
        .abs()
        .mean(): "You divided by the forecast, which favours high ones. Use the truth.",
        off.abs().mean(): "That is the mean error in passengers. A MAPE divides each month's "
        "by its true value.",
        100
        * off.abs().sum()
        / truth.sum(): "That compares the sums: large months count most. Divide month by month.",
        100 * share.abs().max(): "That is the worst month. Take the mean over all.",
    }
    for mistaken, message in mistakes.items():
        yield math.isclose(abs(found), mistaken, abs_tol=6e-3), message
    said = f"Forecasts of {forecast.tolist()} for {truth.tolist()}"
    yield (
        abs(found - 13.125) > 6e-3,
        f"{said} are off by 13.125 % on average, but you have {found:g}.",
    )


MISFITS = (
    "The names do not fit: 'model.V.weight' is 'V.weight' in the network. Take the first word off.",
    "It works for Darts' network, but not where parts are called 'model' and 'decoder'. "
    "`replace` finds a word "
    "anywhere, and `lstrip` takes letters: take off the first word, and only that.",
)


@exercise(
    "The launcher trained a module that keeps the network as `model`: all names begin with "
    "that word and a dot.",
    "Make a dictionary with `name.removeprefix('model.')` for each name, and give it to "
    "`network.load_state_dict`.",
    solution="""
        def my_put_back(weights, network):
            named = {name.removeprefix("model."): value for name, value in weights.items()}
            network.load_state_dict(named)
    """,
    right="`load_state_dict` compares the names by itself: it raises for one that is missing "
    "or unknown, unless "
    "somebody says `strict=False`.",
)
def put_back(answer: Any) -> Mistakes:
    """Write `my_put_back(weights, network)`: load what a launcher's checkpoint holds, such as
    `model.V.weight`, into a network that has it as `V.weight`."""
    # names that careless code spoils
    other = nn.ModuleDict({"model": nn.Linear(2, 3), "decoder": nn.Linear(3, 1)})
    for network, misfit in zip((DartsNetwork(), other), MISFITS, strict=True):
        before = {name: value.clone() for name, value in network.state_dict().items()}
        wanted = {name: value + 1 for name, value in before.items()}
        weights = {f"model.{name}": value for name, value in wanted.items()}
        try:
            answer(weights, network)
        except (RuntimeError, KeyError) as error:
            if isinstance(error, RuntimeError) and "state_dict" not in str(error):
                raise
            raise Wrong(
                f"Nothing is called {error} there. {misfit}" if type(error) is KeyError else misfit
            ) from None
        now = network.state_dict()
        kept = [name for name in wanted if torch.equal(now[name], before[name])]
        leaves = (
            "`strict=False` skips every name that does not fit; assigning to a name "
            "leaves the network as it was."
        )
        yield kept == list(wanted), f"No weight of the network has changed. {leaves}"
        yield (
            kept,
            f"Some weights have stayed as they were: {', '.join(kept)}. A network needs all "
            f"its trained ones.",
        )
        arrived = all(torch.allclose(now[name], value) for name, value in wanted.items())
        yield (
            not arrived,
            "The network's weights have changed, but they are not those of the checkpoint.",
        )
