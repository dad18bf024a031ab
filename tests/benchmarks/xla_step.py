"""Steps a second of the RNN on XLA, written in each of the ways that torch_xla offers.

    python tests/benchmarks/xla_step.py [--repeats 9] [--json FILE]

Every way trains the 481-parameter RNN on the same full batches of 16 windows of 20 months, each way
with both forms of Adam that XLA can run. The ways take turns, several times over, after all of them
have compiled; a round of each is divided by the round of the course's loop next to it, and the
medians of those ratios are compared. XLA's counters check that no round compiled anything and that
each step was one program or more. The wall clock says what a user waits; the time of all CPU cores
together says the same with less noise when other programs use the machine.
"""

import argparse
import datetime
import json
import statistics
import time
from collections.abc import Callable
from importlib.metadata import version

import torch

from course_utils.data import Scale, ShuffledBatches, air_passengers, make_windows
from course_utils.data.models import AirRNN
from course_utils.devices import cpu_name, wait_for
from course_utils.plain_training import train_plain
from course_utils.xla import start_xla, xla_counters

STEPS = 20
DEVICE = start_xla()
import torch_xla  # noqa: E402  (after start_xla, which imports it without side effects)

mse = torch.nn.functional.mse_loss
SERIES = air_passengers()[0]
INPUTS, TARGETS = (part.to(DEVICE) for part in make_windows(Scale.fit(SERIES).apply(SERIES), 20))
FULL = [
    index for _ in range(STEPS) for index in ShuffledBatches(len(INPUTS), 16) if len(index) == 16
][:STEPS]


def course() -> Callable[[], object]:
    """The loop of lesson 1 and 4: train_plain, which also adds up the loss."""
    torch.manual_seed(42)
    model = AirRNN().to(DEVICE)
    return lambda: train_plain(model, INPUTS, TARGETS, batches=FULL, epochs=1)


def steps_of(write: Callable, **adam) -> Callable[[], object]:
    """Build a model and return a round of STEPS steps, written by `write`, which adds up the loss
    as well.
    """
    torch.manual_seed(42)
    model = AirRNN().to(DEVICE)
    step = write(model, torch.optim.Adam(model.parameters(), lr=1e-3, **adam))

    def round_of_steps() -> float:
        total = torch.zeros((), device=DEVICE)
        torch_xla.sync()
        for index in FULL:
            total = step(index, total)
        return total.item()

    return round_of_steps


def learn(model, optimizer, index, total, forward=None):
    loss = mse((forward or model)(INPUTS[index]), TARGETS[index])
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return total + loss.detach() * len(index)


def with_sync(model, optimizer):
    def step(index, total):
        total = learn(model, optimizer, index, total)
        torch_xla.sync()
        return total

    return step


def with_step(model, optimizer):
    def step(index, total):
        with torch_xla.step():
            return learn(model, optimizer, index, total)

    return step


def with_compile(model, optimizer):
    return torch_xla.compile(lambda index, total: learn(model, optimizer, index, total))


def with_dynamo(model, optimizer):
    forward = torch.compile(model, backend="openxla")

    def step(index, total):
        total = learn(model, optimizer, index, total, forward)
        torch_xla.sync()
        return total

    return step


def with_scan(model, optimizer):
    """The RNN's steps as one loop in the program instead of twenty copies: it compiles sooner."""
    from torch_xla.experimental.scan import scan

    rnn = model.rnn

    def cell(carry, step):
        state, weights = carry
        state = torch.tanh(step + state @ weights)
        return (state, weights), state

    def forward(windows):
        steps = torch.nn.functional.linear(
            windows, rnn.weight_ih_l0, rnn.bias_ih_l0 + rnn.bias_hh_l0
        ).transpose(0, 1)
        start = torch.zeros(len(windows), rnn.hidden_size, device=DEVICE), rnn.weight_hh_l0.t()
        return model.head(scan(cell, start, steps, is_fn_pure=True)[1].transpose(0, 1))

    def step(index, total):
        total = learn(model, optimizer, index, total, forward)
        torch_xla.sync()
        return total

    return step


WRITERS = {
    "sync()": with_sync,
    "step()": with_step,
    "compile()": with_compile,
    "torch.compile(openxla), sync()": with_dynamo,
    "scan, sync()": with_scan,
}
ADAMS = {"Adam": {}, "Adam(foreach)": {"foreach": True}}


def clock(work: Callable[[], object]) -> tuple[float, float]:
    """Return the seconds of the wall clock and of all CPU cores together that one step takes."""
    wait_for(DEVICE)
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    wait_for(DEVICE)
    return (time.perf_counter() - wall) / STEPS, (time.process_time() - cpu) / STEPS


def warm(work: Callable[[], object]) -> None:
    for _ in range(6):
        before = xla_counters()
        clock(work)
        if xla_counters().compilations == before.compilations:
            return
    raise RuntimeError("this way compiles anew in each round.")


def measure(ways: dict[str, Callable], repeats: int) -> dict[str, dict[str, list[float]]]:
    """Return, for each way, its times a step divided by those of the course's loop right before or
    after it.
    """
    ratios: dict[str, dict[str, list[float]]] = {name: {"wall": [], "cpu": []} for name in ways}
    for repeat in range(repeats):
        for name, work in ways.items():
            before = xla_counters()
            pair = (work, COURSE) if repeat % 2 else (COURSE, work)
            times = dict(zip(pair, map(clock, pair), strict=True))
            did = xla_counters() - before
            assert did.compilations == 0, f"{name} compiled during a timed round"
            assert did.executions >= 2 * STEPS, (
                f"{name} ran {did.executions} programs in {2 * STEPS} steps"
            )
            for kind, mine, courses in zip(
                ("wall", "cpu"), times[work], times[COURSE], strict=True
            ):
                ratios[name][kind].append(mine / courses)
    return ratios


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--json")
    options = parser.parse_args()
    ways = {
        f"{way}, {adam}": steps_of(write, **ADAMS[adam])
        for way, write in WRITERS.items()
        for adam in ADAMS
    }
    for work in (COURSE, *ways.values()):
        warm(work)
    ratios = measure(ways, options.repeats)
    medians = {
        name: {kind: statistics.median(both[kind]) for kind in both}
        for name, both in ratios.items()
    }
    print("time a step, as a multiple of the course's loop (medians; above 1 is slower)")
    for name, median in sorted(medians.items(), key=lambda item: item[1]["cpu"]):
        print(f"{name:48} wall {median['wall']:.3f}   CPU {median['cpu']:.3f}")
    if options.json:
        facts = {
            "device": f"XLA on {cpu_name()} (rehearsal)",
            "date": datetime.date.today().isoformat(),
        }
        facts |= {
            "torch_xla": version("torch_xla"),
            "steps": STEPS,
            "ratios": ratios,
            "median_ratios": medians,
        }
        with open(options.json, "w") as file:
            json.dump(facts, file, indent=1)


COURSE = course()

if __name__ == "__main__":
    main()
