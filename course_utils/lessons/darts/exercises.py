"""The exercises of lesson 8: the device of a Darts model, what a MAPE compares, and weights that come back.

Nothing here needs Darts.
"""

from typing import Any
from unittest import mock

import torch
from torch import nn

from course_utils.exercises import exercise
from course_utils.exercises.answers import Wrong, expect, expect_function, number_of, quote, refuse
from course_utils.lessons.darts import DartsNetwork
from course_utils.old_guides.old_trainer import translate, written


@exercise(
    "Darts hands this dictionary to a Lightning Trainer as it is. Which argument of the Trainer names the device?",
    "Its `accelerator`. Say 'cpu', or let `trainer_kwargs` of this course say it.",
    solution='my_kwargs = {"accelerator": "cpu"}',
    right="The model stays on the CPU. Compare with `RNNModel(**GUIDE).trainer_params` in the section 'By default', "
    "which names no accelerator: with eight GPUs it was the CUDAAccelerator.",
)
def device(answer: Any) -> None:
    """Make the `pl_trainer_kwargs` with which a Darts model trains on the CPU, even of a machine with eight GPUs."""
    expect(answer, dict, "a dictionary of arguments for Lightning's Trainer")
    _refuse_unknown(answer)
    accelerator, count = answer.get("accelerator"), answer.get("devices", "auto")
    kind = type(accelerator)
    made_by = kind.__module__.partition(".")[0]
    is_cpu = accelerator == "cpu" or (made_by, kind.__name__) == ("pytorch_lightning", "CPUAccelerator")
    mistakes = {
        "Nothing in it names a device, so Lightning's own default, 'auto', takes the GPUs.": accelerator is None,
        "'auto' is what holds when you say nothing: the best there is. Here that is the GPUs.": accelerator == "auto",
        "That asks for the GPUs, however many `devices` are named. Name the CPU.": accelerator in ("gpu", "cuda"),
        "That is one of `lightning.pytorch`. Darts needs that of `pytorch_lightning`.": made_by == "lightning",
        f"Lightning calls the CPU 'cpu', but your accelerator is {quote(accelerator)}": not is_cpu,
        f"On a CPU `devices` is how many processes, at least 1, but yours is {quote(count)}": count != "auto"
        and not (str(count).isdigit() and int(count) > 0),
    }
    refuse(mistakes)


def _refuse_unknown(arguments: dict) -> None:
    """Raise Wrong for what today's Trainer does not take, or would read in another way than the old one."""
    modern = translate(arguments)
    for name, why in modern.refused.items():
        argument = written(name, arguments[name])
        raise Wrong(f"The Trainer would raise TypeError: {argument}: {why} A device is its `accelerator`.")
    for note in modern.notes:
        old = f"`{note.old}` is of an older Lightning, and fails when the model is trained. {note.why}"
        refuse({old: "accelerator" not in note.old})


FORECAST = (420.0, 350.0, 500.0, 90.0)
TRUTH = (400.0, 400.0, 400.0, 100.0)


@exercise(
    "For each month: how far off, as a part of what? Then the mean over the months, in percent.",
    "Divide the absolute difference of each month by the true value of that month.",
    solution="""
        def my_mape(forecast, truth):
            return 100 * ((forecast - truth).abs() / truth).mean()
    """,
    right="It counts in shares of each month's truth, so the unit does not matter, but the model's scale does, where a "
    "month can be 0: that is why the lesson calls `inverse_transform` before `mape`.",
)
def mape(answer: Any) -> None:
    """Write `my_mape(forecast, truth)`: the mean absolute percentage error of two tensors of monthly passengers."""
    expect_function(answer, "forecast", "truth")
    forecast, truth = torch.tensor(FORECAST, device="cpu"), torch.tensor(TRUTH, device="cpu")
    found = number_of(answer(forecast.clone(), truth.clone()), "the error in percent")
    off, share = forecast - truth, (forecast - truth) / truth
    known = {  # what is wrong with each way of computing it, and what that gives
        "That is a share of 1. In percent it is a hundred times as much.": share.abs().mean(),
        "Months that are too high and too low cancel each other out: take absolute values first.": 100 * share.mean(),
        "You divided by the forecast, which favours high ones. Divide by the truth.": 100
        * (off / forecast).abs().mean(),
        "That is the mean error in passengers. A MAPE divides each month's by its true value.": off.abs().mean(),
        "That compares the sums: large months count most. Divide each month.": 100 * off.abs().sum() / truth.sum(),
        "That is the worst month. Take the mean over all.": 100 * share.abs().max(),
    }
    refuse({message: abs(abs(found) - abs(value)) < 1e-3 for message, value in known.items()})
    right = 13.125  # 5, 12.5, 25 and 10 percent
    other = f"Forecasts of {FORECAST} for {TRUTH} are off by {right:g} % on average, but you have {found:g}."
    refuse({other: abs(found - right) > 1e-3})


class _Other(nn.Module):
    """A network whose parts have names that a careless change of the checkpoint's names would spoil."""

    def __init__(self):
        super().__init__()
        self.model = nn.Linear(2, 3)
        self.decoder = nn.Linear(3, 1)


MISFITS = {
    DartsNetwork: "The names do not fit: 'model.V.weight' is 'V.weight' in the network. Take the first word off.",
    _Other: "It works for Darts' network, but not where parts are called 'model' and 'decoder'. `replace` finds a word "
    "anywhere, and `lstrip` takes letters: take off the first word, and only that.",
}


@exercise(
    "The launcher trained a module that keeps the network as `model`: all names begin with that word and a dot.",
    "Make a dictionary with `name.removeprefix('model.')` for each name, and give it to `network.load_state_dict`.",
    solution="""
        def my_put_back(weights, network):
            named = {name.removeprefix("model."): value for name, value in weights.items()}
            network.load_state_dict(named)
    """,
    right="`load_state_dict` compares the names by itself: it raises for one that is missing or unknown, unless "
    "somebody says `strict=False`. The lesson's own line is the same.",
)
def put_back(answer: Any) -> None:
    """Write `my_put_back(weights, network)`: load what a launcher's checkpoint holds, such as `model.V.weight`, into a
    network that has it as `V.weight`."""
    expect_function(answer, "weights", "network")
    for make, misfit in MISFITS.items():
        network = make()
        before = {name: value.clone() for name, value in network.state_dict().items()}
        wanted = {name: value + 1 for name, value in make().state_dict().items()}
        weights = {f"model.{name}": value for name, value in wanted.items()}
        with mock.patch.object(network, "load_state_dict", wraps=network.load_state_dict) as load:
            try:
                answer(weights, network)
            except (RuntimeError, KeyError) as error:
                if isinstance(error, RuntimeError) and "state_dict" not in str(error):
                    raise
                raise Wrong(misfit) from None
        _compare(network.state_dict(), before, wanted, load.called)


def _compare(now: dict, before: dict, wanted: dict, loaded: bool) -> None:
    kept = [name for name in wanted if torch.equal(now[name], before[name])]
    none = len(kept) == len(wanted)
    mistakes = {
        "No weight has changed. `strict=False` skips every name that does not fit: here, all.": none and loaded,
        "No weight of the network has changed. Naming or copying a value leaves the network as it was.": none,
        f"Some weights have stayed as they were: {', '.join(kept)}. A network needs all of its trained ones.": kept,
        "The network's weights have changed, but to others than those of the checkpoint.": not all(
            torch.allclose(now[name], value) for name, value in wanted.items()
        ),
    }
    refuse(mistakes)
