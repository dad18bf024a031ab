"""The exercises of lesson 4: what is counted in a TPU's name, what a loop may ask of XLA, and which shapes it sees.

Where XLA runs in this kernel, its counters are read. Where it does not, what they would have counted is watched.
"""

import itertools
import operator
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch.overrides import TorchFunctionMode

from course_utils.exercises.answers import number_of
from course_utils.exercises.exercise import Wrong, exercise, expect_function, quote
from course_utils.exercises.whole_numbers import whole_number
from course_utils.xla import run_recorded, start_xla, xla_counters

BATCHES = 10
LONGEST_SENTENCE, MOST_PROGRAMS, LEAST_SHARE = 64, 4, 0.7
WITHOUT_XLA = "XLA has not been started in this kernel, so this was watched on ordinary tensors."

# What a tensor is asked when Python needs its value: on XLA, each of them fetches it from the device.
ASKING = {"item", "tolist", "numpy", "cpu"} | {
    f"__{name}__" for name in ("float", "int", "bool", "index", "complex", "array", "format", "repr", "contains")
}
_features = itertools.count(200)  # another width for each check, so that no program of an earlier one fits


@exercise(
    hints=(
        "The section 'What is a TPU?' says what the number in a name counts, and what PyTorch shows of a chip.",
        "A v4 chip has two cores, so 32 cores are 16 chips. How many devices does a v4 chip show?",
    ),
    solution="my_count = 32 // 2",
)
def pod(answer):
    """Somebody lends you a `v4-32`. Say how many devices PyTorch shows on all of its hosts together."""
    count = whole_number(answer, "how many devices")
    if count == 32:
        raise Wrong("32 is what the name counts: cores. The two cores of a v4 chip work as one device.")
    if count == 4:
        raise Wrong("4 is the number of its hosts, of four chips each. Each chip is a device.")
    if count == 8:
        raise Wrong("8 is one board of v2 or v3, which 'a TPU has 8 cores' comes from. This slice has other numbers.")
    if count == 64:
        raise Wrong("You took the 32 for chips. In the names of v2 to v4 the number counts cores.")
    if count != 16:
        raise Wrong(f"{count} is neither its cores nor its chips. How many cores has a v4 chip, and how many devices?")
    return (
        "16 chips, and each is one device. The cell with `pod_commands` above starts from the same name: it works out "
        "the number of hosts from the cores of a chip and the chips of a host."
    )


@exercise(
    hints=(
        "Between two steps there should be a sync(), and nothing that asks for a value.",
        "Add the losses up as tensors, with `total = total + step(batch)` and `sync()` in the loop, and call "
        "`.item()` once after it.",
    ),
    solution="""
        def my_epoch(step, sync, batches):
            total = 0
            for batch in batches:
                total = total + step(batch)
                sync()
            return total.item() / len(batches)
    """,
)
def epoch(answer):
    """Write `my_epoch(step, sync, batches)`: do all steps, one program each, and return their mean loss as a number."""
    expect_function(answer, "step", "sync", "batches")
    seen = _Epoch()
    with seen.watched():
        loss = answer(seen.step, seen.sync, list(seen.batches))
    _check_steps(seen.events)
    _check_reads(seen.reads_at_step, seen.reads)
    if isinstance(loss, torch.Tensor):
        raise Wrong("What you return is still a tensor on the device. Read it once, after the loop, with `.item()`.")
    _check_loss(number_of(loss, "the mean loss"), seen.losses())
    return (
        f"A sync after each step, and the loss read once. {seen.counted()} In Lightning the same is done for you: "
        "`self.log` keeps the losses on the device until the epoch ends."
    )


class _Epoch:
    """Ten batches and a step, on XLA where it runs, and what a loop did with them in which order."""

    def __init__(self):
        self.device = _xla_device()
        generator = torch.Generator().manual_seed(0)
        width = next(_features)
        self.host = [torch.rand(4, width, generator=generator, device="cpu") for _ in range(BATCHES)]
        self.batches = [batch.to(self.device or "cpu") for batch in self.host]
        self.events: list[str] = []
        self.reads_at_step: list[int] = []
        self._watch, self._before = _Asked(), None

    def step(self, batch: torch.Tensor) -> torch.Tensor:
        self.events.append("step")
        self.reads_at_step.append(self.reads)
        return batch.square().mean()

    def sync(self, *_, **__) -> None:
        self.events.append("sync")
        if self.device:
            run_recorded(self.device)

    @contextmanager
    def watched(self) -> Iterator[None]:
        if self.device:
            run_recorded(self.device)  # what was recorded before is not the student's
            self._before = xla_counters()
            yield
            self._did = xla_counters() - self._before
        else:
            with self._watch:
                yield

    @property
    def reads(self) -> int:
        return (xla_counters() - self._before).from_device if self.device else self._watch.count

    def losses(self) -> list[float]:
        return [batch.square().mean().item() for batch in self.host]

    def counted(self) -> str:
        return f"XLA counted {self._did}." if self.device else WITHOUT_XLA


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


def _check_steps(events: list[str]) -> None:
    steps, syncs = events.count("step"), events.count("sync")
    if steps != BATCHES:
        raise Wrong(f"There are {BATCHES} batches, but your function did {steps} of them.")
    if not syncs:
        raise Wrong(
            f"There was no call of the `sync` that your function is given. The notes of all {steps} steps become one "
            "long program, and an epoch with another number of batches is another program."
        )
    first, last = events.index("step"), len(events) - 1 - events[::-1].index("step")
    if "sync" not in events[first:last]:
        raise Wrong(f"There was a sync(), but not between the steps: all {steps} of them are one program. Move it in.")
    joined = sum(pair == ("step", "step") for pair in itertools.pairwise(events))
    if joined:
        raise Wrong(
            f"In {joined} of {steps - 1} places a step follows another one with no sync() between. It belongs in each."
        )


def _check_reads(at_step: list[int], in_all: int) -> None:
    if at_step[-1]:
        raise Wrong(
            f"Before the last step the loop had read {at_step[-1]} values from the device. `.item()`, `float(...)`, "
            "`print` and an `if` need a number, so XLA stops and sends one. Add up on the device, and read once."
        )
    if in_all >= BATCHES // 2:
        raise Wrong(
            f"The loop is fine, but after it you read {in_all} values one by one, and each is a trip of its own. Add "
            "them up on the device (or `torch.stack` them), and read one."
        )


def _check_loss(loss: float, losses: list[float]) -> None:
    mean = sum(losses) / len(losses)
    if abs(loss - losses[-1]) < 1e-5:
        raise Wrong("That is the loss of the last batch. It jumps from batch to batch: return the mean over all.")
    if abs(loss - sum(losses)) < 1e-4:
        raise Wrong("That is the sum of the losses. Divide it by the number of batches.")
    if not abs(loss - mean) < 1e-4:
        raise Wrong(f"The losses have the mean {mean:.4f}, but your function returned {loss:.4f}.")


@exercise(
    hints=(
        "A few buckets, each as long as its longest sentence. Which lengths, so that not too many rows are empty?",
        "Round up to the next multiple of 16: that makes the four buckets 16, 32, 48 and 64.",
    ),
    solution="""
        def my_room(length):
            return 16 * -(-length // 16)
    """,
)
def room(answer):
    """Write `my_room(length)`, to how many rows a sentence of 1 to 64 words is padded: at most four programs, and at
    least 70 % of all rows are words."""
    expect_function(answer, "length")
    lengths = range(1, LONGEST_SENTENCE + 1)
    rooms = [_room_for(answer, length) for length in lengths]
    if len(set(rooms)) > MOST_PROGRAMS:
        raise Wrong(
            f"Sentences of 1 to {LONGEST_SENTENCE} words need {_counted(rooms)}. Let no more than {MOST_PROGRAMS} "
            "shapes reach XLA: each new one is compiled."
        )
    share = sum(lengths) / sum(rooms)
    if share < LEAST_SHARE:
        raise Wrong(
            f"Few shapes, but only {share:.0%} of the rows are words: the rest is arithmetic on nothing. Another "
            "bucket, or other limits, waste less."
        )
    return (
        f"{_counted(rooms)}; {share:.0%} of the rows are words. Compare with the two buckets of mistake 2. On a TPU "
        "there is one more thing to ask: are the sizes multiples of what its matrix unit takes?"
    )


def _room_for(answer: Callable, length: int) -> int:
    found = answer(length)
    try:
        found = operator.index(found)
    except TypeError:
        raise Wrong(
            f"A room is a whole number of rows, for torch.zeros, but for a length of {length} yours is {quote(found)}."
        ) from None
    if found < length:
        raise Wrong(
            f"A sentence of length {length} gets {found} rows, so words are cut off. A room holds the sentence."
        )
    if found > 100 * LONGEST_SENTENCE:
        raise Wrong(f"A sentence of length {length} gets {found} rows. Almost all of that is arithmetic on nothing.")
    return found


def _counted(rooms: list[int]) -> str:
    """Say how many programs these shapes need, counted by XLA where it runs and the shapes are few."""
    device, shapes, width = _xla_device(), len(set(rooms)), next(_features)
    if not device or shapes > MOST_PROGRAMS:
        return f"{shapes} programs, one for each shape"
    run_recorded(device)
    before = xla_counters()
    for rows in rooms:
        answer = torch.zeros(rows, width).to(device).tanh().sum(dim=0)
        run_recorded(device)
        del answer  # held until here: XLA leaves out what nobody holds
    return f"{shapes} shapes, and XLA counted {(xla_counters() - before).compilations} programs"


@exercise(
    hints=(
        "A number says how many, and a list says which. From where does the list count?",
        "It counts from 0, and holds one index.",
    ),
    solution="my_devices = [3]",
)
def devices(answer):
    """Say what to pass as `devices` to train on the fourth core of a board of eight, and on no other."""
    if isinstance(answer, torch.Tensor) or type(answer).__module__ == "numpy":
        raise Wrong("Lightning takes a Python number, list or text here.")
    if isinstance(answer, str):
        answer = _read(answer)
    if answer in ("auto", 8):
        raise Wrong("That is all eight cores.")
    if answer == 1:
        raise Wrong("One core, yes, but the first one: a number says how many, and not which.")
    if isinstance(answer, int):
        raise Wrong(f"A number says how many cores, and Lightning refuses {answer} of 8: it can be 1 or all.")
    if not isinstance(answer, list | tuple) or not all(type(index) is int for index in answer):
        raise Wrong(f"`devices` takes a number, a list of one index, or 'auto', but this is {quote(answer)}")
    if len(answer) != 1:
        raise Wrong(f"A list names one core on a TPU, and Lightning refuses {len(answer)} in it.")
    if answer[0] == 4:
        raise Wrong("[4] is xla:4, the fifth core: the list counts from 0.")
    if answer[0] != 3:
        raise Wrong(f"[{answer[0]}] is one core, but not the fourth one. The list counts from 0.")
    return (
        "xla:3, one core, the fourth. In the table of `ask` above, see what 4 and [4] make: the first is refused, and "
        "the second takes one core, the fifth. Nothing on that line means four cores."
    )


def _read(text: str) -> object:
    """Read a text as Lightning does: "3" is a number and "3," is a list."""
    if "," in text:
        return [_read(part) for part in text.split(",") if part.strip()]
    return int(text) if text.strip().isdigit() else text.strip()


def _xla_device() -> torch.device | None:
    """Return XLA's device where this kernel has started it; nothing is started for a check."""
    return start_xla() if start_xla.cache_info().currsize else None
