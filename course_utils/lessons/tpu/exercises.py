"""The exercises of lesson 4: what is counted in a TPU's name, what a loop may ask of XLA, and which shapes it sees.

Where XLA runs in this kernel, its counters are read. Where it does not, what they would have counted is watched.
"""

import itertools
import operator
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from course_utils.exercises import exercise
from course_utils.exercises.answers import Wrong, expect_function, number_of, quote, refuse, whole_number
from course_utils.xla import run_recorded, started_xla, xla_counters

BATCHES = 10
LONGEST_SENTENCE, MOST_PROGRAMS, LEAST_SHARE = 64, 4, 0.7

# What a tensor is asked when Python needs its value: on XLA, each of them fetches it from the device.
ASKING = {"item", "tolist", "numpy", "cpu"} | {
    f"__{name}__" for name in ("float", "int", "bool", "index", "complex", "array", "format", "repr", "contains")
}
_features = itertools.count(200)  # another width for each check, so that no program of an earlier one fits


@exercise(
    "The section 'What is a TPU?' says what the number in a name counts, and what PyTorch shows of a chip.",
    "A v4 chip has two cores, so 32 cores are 16 chips. How many devices does a v4 chip show?",
    solution="my_count = 32 // 2",
    right="16 chips, and each is one device. `pod_commands` above works out the number of hosts from the same name.",
)
def pod(answer: Any) -> None:
    """Somebody lends you a `v4-32`. Say how many devices PyTorch shows on all of its hosts together."""
    count = whole_number(answer, "how many devices")
    mistakes = {
        "32 is what the name counts: cores. The two cores of a v4 chip work as one device.": count == 32,
        "4 is the number of its hosts, of four chips each. Each chip is a device.": count == 4,
        "8 is one board of v2 or v3, which 'a TPU has 8 cores' comes from, and not this slice.": count == 8,
        "You took the 32 for chips. In the names of v2 to v4 the number counts cores.": count == 64,
        f"{count} is neither its cores nor its chips. How many of each has a v4, and what is a device?": count != 16,
    }
    refuse(mistakes)


@exercise(
    "Between two steps there should be a sync(), and nothing that asks for a value.",
    "`total = total + step(batch)` and `sync()` in the loop; call `.item()` once after it.",
    solution="""
        def my_epoch(step, sync, batches):
            total = 0
            for batch in batches:
                total = total + step(batch)
                sync()
            return total.item() / len(batches)
    """,
    right="In Lightning, `self.log` does the same: it keeps the losses on the device until the epoch ends.",
)
def epoch(answer: Any) -> str:
    """Write `my_epoch(step, sync, batches)`: do all steps, one program each, and return their mean loss as a number."""
    expect_function(answer, "step", "sync", "batches")
    device, generator = _device(), torch.Generator().manual_seed(0)
    host = torch.rand(BATCHES, 4, next(_features), generator=generator, device="cpu")
    batches = [batch.to(device) for batch in host]
    events: list[str] = []
    reads: list[int] = []  # until each step
    with _watched(device) as watch:

        def step(batch: torch.Tensor) -> torch.Tensor:
            events.append("step")
            reads.append(watch()[0])
            return batch.square().mean()

        def sync(*_: Any, **__: Any) -> None:
            events.append("sync")
            run_recorded(device)

        loss = answer(step, sync, batches)
        in_all, counted = watch()
    _check_events(events)
    _check_reads(reads[-1], in_all)
    kept = isinstance(loss, torch.Tensor)
    refuse({"What you return is still a tensor on the device. Read it once, after the loop, with `.item()`.": kept})
    _check_loss(number_of(loss, "the mean loss"), [batch.square().mean().item() for batch in host])
    return counted


def _device() -> torch.device:
    """Return XLA's device where this kernel has started it, and else the CPU; nothing is started for a check."""
    return started_xla() or torch.device("cpu")


@contextmanager
def _watched(device: torch.device) -> Iterator[Callable[[], tuple[int, str]]]:
    """Yield a function that says how many values were read so far in this block, and what XLA has counted."""
    if device.type == "cpu":
        with _Asked() as asked:
            yield lambda: (asked.count, "XLA was not started in this kernel, so ordinary tensors were watched.")
        return
    run_recorded(device)  # what was recorded before is not the student's
    before = xla_counters()

    def look() -> tuple[int, str]:
        did = xla_counters() - before
        return did.from_device, f"XLA counted {did}."

    yield look


class _Asked(TorchFunctionMode):
    """Counts how often a tensor's value is asked for."""

    count = 0

    def __torch_function__(self, function, types, args=(), kwargs=None):
        name, kwargs = getattr(function, "__name__", ""), kwargs or {}
        to_host = name == "to" and any(str(there) == "cpu" for there in (*args[1:], *kwargs.values()))
        if name in ASKING or to_host:
            self.count += 1
        elif name in ("tensor", "as_tensor") and args and isinstance(args[0], list | tuple):
            self.count += sum(isinstance(one, torch.Tensor) for one in args[0])
        return function(*args, **kwargs)


def _check_events(events: list[str]) -> None:
    steps = events.count("step")
    refuse({f"There are {BATCHES} batches, but your function did {steps} of them.": steps != BATCHES})
    last = BATCHES + events.count("sync") - 1 - events[::-1].index("step")
    between = events[events.index("step") : last]
    joined = sum(pair == ("step", "step") for pair in itertools.pairwise(events))
    mistakes = {
        "There was no call of the `sync` that your function is given: all steps are one program.": "sync" not in events,
        "There was a sync(), but not between the steps: all are one program.": "sync" not in between,
        f"In {joined} of {steps - 1} places a step follows a step with no sync() between them.": joined,
    }
    refuse(mistakes)


def _check_reads(in_loop: int, in_all: int) -> None:
    mistakes = {
        f"Before the last step the loop had read {in_loop} values from the device: `.item()`, `float(...)`, `print` "
        "and `if` need a number, and XLA stops and sends one. Add up on the device, and read once.": in_loop,
        f"The loop is fine, but after it you read {in_all} values one by one. Add them up on the device (or "
        "`torch.stack` them), and read one.": in_all >= BATCHES // 2,
    }
    refuse(mistakes)


def _check_loss(loss: float, losses: list[float]) -> None:
    mean, total = sum(losses) / len(losses), sum(losses)
    mistakes = {
        "That is the loss of the last batch, which jumps: return the mean over all.": abs(loss - losses[-1]) < 1e-5,
        "That is the sum of the losses. Divide it by the number of batches.": abs(loss - total) < 1e-4,
        f"The mean loss is {mean:.4f}, but your function returned {loss:.4f}.": abs(loss - mean) >= 1e-4,
    }
    refuse(mistakes)


@exercise(
    "A few buckets, each as long as its longest sentence. Which lengths, so that not too many rows are empty?",
    "Round up to the next multiple of 16: that makes the four buckets 16, 32, 48 and 64.",
    solution="""
        def my_room(length):
            return 16 * -(-length // 16)
    """,
    right="Compare with mistake 2. On a TPU, also ask: are the sizes multiples of what its matrix unit takes?",
)
def room(answer: Any) -> str:
    """Write `my_room(length)`, to how many rows a sentence of 1 to 64 words is padded: at most four programs, and at
    least 70 % of all rows are words."""
    expect_function(answer, "length")
    lengths = range(1, LONGEST_SENTENCE + 1)
    rooms = [_room_for(answer, length) for length in lengths]
    counted, share = _counted(rooms), sum(lengths) / sum(rooms)
    mistakes = {
        f"Sentences of 1 to {LONGEST_SENTENCE} words need {counted}. Each new shape is compiled.": len(set(rooms))
        > MOST_PROGRAMS,
        f"Few shapes, but only {share:.0%} of the rows are words. Other buckets waste less.": share < LEAST_SHARE,
    }
    refuse(mistakes)
    return f"{counted}; {share:.0%} of the rows are words."


def _room_for(answer: Any, length: int) -> int:
    found = answer(length)
    try:
        found = operator.index(found)
    except TypeError:
        raise Wrong(
            f"A room is a whole number of rows, but for a length of {length} yours is {quote(found)}."
        ) from None
    gets = f"A sentence of length {length} gets {found} rows"
    mistakes = {
        f"{gets}, so words are cut off. A room holds the sentence.": found < length,
        f"{gets}. Almost all of that is arithmetic on nothing.": found > 100 * LONGEST_SENTENCE,
    }
    refuse(mistakes)
    return found


def _counted(rooms: list[int]) -> str:
    """Say how many programs these shapes need, counted by XLA where it runs and the shapes are few."""
    device, shapes, width = _device(), len(set(rooms)), next(_features)
    if device.type == "cpu" or shapes > MOST_PROGRAMS:
        return f"{shapes} programs, one for each shape"
    run_recorded(device)
    before = xla_counters()
    for rows in rooms:
        answer = torch.zeros(rows, width).to(device).tanh().sum(dim=0)
        run_recorded(device)
        del answer  # held until here: XLA leaves out what nobody holds
    return f"{shapes} shapes, and XLA counted {(xla_counters() - before).compilations} programs"


@exercise(
    "A number says how many, and a list says which. From where does the list count?",
    "It counts from 0, and holds one index.",
    solution="my_devices = [3]",
    right="xla:3, the fourth core. In the table of `ask` above, 4 is refused, and [4] takes one core, the fifth. "
    "Nothing on that line means four cores.",
)
def devices(answer: Any) -> None:
    """Say what to pass as `devices` to train on the fourth core of a board of eight, and on no other."""
    foreign = isinstance(answer, torch.Tensor) or type(answer).__module__ == "numpy"
    refuse({"Lightning takes a Python number, list or text here.": foreign})
    if isinstance(answer, str):
        answer = _read(answer)
    number = isinstance(answer, int)
    listed = isinstance(answer, list | tuple) and all(type(index) is int for index in answer)
    mistakes = {
        "That is all eight cores.": answer in ("auto", 8),
        "One core, yes, but the first one: a number says how many, and not which.": number and answer == 1,
        f"A number says how many cores, and Lightning refuses {answer} of 8: it can be 1 or all.": number,
        f"`devices` takes a number, a list of one index, or 'auto', but this is {quote(answer)}": not listed,
    }
    refuse(mistakes)
    mistakes = {
        f"A list names one core on a TPU, and Lightning refuses {len(answer)} in it.": len(answer) != 1,
        "[4] is xla:4, the fifth core: the list counts from 0.": [*answer] == [4],
        f"{[*answer]} is one core, but not the fourth one. The list counts from 0.": [*answer] != [3],
    }
    refuse(mistakes)


def _read(text: str) -> object:
    """Read a text as Lightning does: "3" is a number and "3," is a list."""
    if "," in text:
        return [_read(part) for part in text.split(",") if part.strip()]
    return int(text) if text.strip().isdigit() else text.strip()
