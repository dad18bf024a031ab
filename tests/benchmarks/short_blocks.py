"""Ask what any timer can reach in a twentieth of blocked_autorange's time, by replaying one
recording with many rules.

    python tests/benchmarks/short_blocks.py [--seconds 60] [--json FILE]

A minute of calls is recorded, one reading of the clock after each tenth of a millisecond. Each rule
then measures from the same moments of the recording: blocked_autorange's rule (the median of blocks
of 4 ms, for 0.2 s), `time_call`'s own code, and the medians, means and quartiles of shorter and
longer blocks that fill a twentieth of 0.2 s. As all rules see the same weather, what differs
between them is theirs.

`timing_fidelity.py --only short` takes the real measurements; this says whether another rule would
have done better.
"""

import argparse
import json
import statistics
import time
from pathlib import Path

import numpy
import torch
from timing_fidelity import CALLS, relative_spread

from course_utils import timing
from course_utils.stopwatch import BLOCK_S, Reading

THEIR_S, THEIR_BLOCK_S, SHARE = 0.2, 4e-3, 1 / 20
WARM_UP_S = 2e-3  # what `time_call` spends on the first calls and on finding the calls of a block
REPEATS, RUNS = 30, 40
GRAIN_S = 1e-4
ESTIMATES = {
    "median": numpy.median,
    "mean": numpy.mean,
    "mean without the highest tenth": lambda blocks: numpy.sort(blocks)[
        : len(blocks) - len(blocks) // 10
    ].mean(),
    "lower quartile": lambda blocks: numpy.quantile(blocks, 0.25),
    "lowest": numpy.min,
}


class Recording:
    """Calls in a row: wall seconds and CPU seconds of each grain of calls."""

    def __init__(self, fn, seconds: float):
        for _ in range(2000):
            fn()
        start = time.perf_counter()
        for _ in range(1000):
            fn()
        self.calls = max(1, round(GRAIN_S / (time.perf_counter() - start) * 1000))
        rows, end = [], time.perf_counter() + seconds
        with timing.paused_gc():
            while time.perf_counter() < end:
                wall, cpu = time.perf_counter(), time.thread_time()
                for _ in range(self.calls):
                    fn()
                rows.append((time.perf_counter() - wall, time.thread_time() - cpu))
        self.wall, self.cpu = numpy.array(rows).T
        self.grain_s = float(numpy.median(self.wall))

    def grains(self, seconds: float) -> int:
        return max(1, round(seconds / self.grain_s))

    def blocks(self, at: int, block_s: float, total_s: float) -> numpy.ndarray:
        """Return the seconds of one call in each block of this length from grain `at` on."""
        size, count = self.grains(block_s), max(1, int(total_s / block_s))
        return self.wall[at : at + size * count].reshape(count, size).mean(axis=1) / self.calls


class Replay:
    """What `time_call` reads from, in place of a stopwatch."""

    def __init__(self, recording: Recording, at: int):
        self.recording, self.at, self.size = recording, at, recording.grains(BLOCK_S["cpu"])
        self.calls, self.spent_s = recording.calls * self.size, 0.0

    def read(self) -> Reading:
        part = slice(self.at, self.at + self.size)
        wall, cpu = self.recording.wall[part].sum(), self.recording.cpu[part].sum()
        self.at += self.size
        self.spent_s += wall
        return Reading(wall / self.calls, cpu / wall)


def as_time_call(recording: Recording, at: int) -> tuple[float, float]:
    watch = Replay(recording, at)
    used = timing.usable(timing.read_until_narrow(watch, 2.0))
    return statistics.median(reading.seconds for reading in used), watch.spent_s + WARM_UP_S


def rules() -> dict:
    found = {"time_call": as_time_call}
    for block_s in (1e-4, 2e-4, 4e-4, 8e-4, 2e-3, THEIR_BLOCK_S):
        for name, estimate in ESTIMATES.items():

            def rule(recording, at, block_s=block_s, estimate=estimate):
                blocks = recording.blocks(at, block_s, SHARE * THEIR_S - WARM_UP_S)
                return float(estimate(blocks)), SHARE * THEIR_S

            found[f"{name} of {block_s * 1e3:g} ms"] = rule
    return found


def replay(recording: Recording) -> dict:
    """Let each rule measure REPEATS times in each of RUNS runs, blocked_autorange's 0.2 s just
    before it.
    """
    generator, measured = numpy.random.default_rng(0), {name: [] for name in rules()}
    step = recording.grains(1.5 * THEIR_S)
    for _ in range(RUNS):
        start = generator.integers(0, len(recording.wall) - step * (REPEATS + 10))
        moments = [start + k * step for k in range(REPEATS)]
        theirs = [
            float(numpy.median(recording.blocks(at, THEIR_BLOCK_S, THEIR_S))) for at in moments
        ]
        after = recording.grains(THEIR_S)
        for name, rule in rules().items():
            ours = [rule(recording, at + after) for at in moments]
            measured[name].append(
                (
                    statistics.median(a / b for (a, _), b in zip(ours, theirs, strict=True)),
                    statistics.median(spent for _, spent in ours) / (THEIR_S + WARM_UP_S),
                    relative_spread([a for a, _ in ours]) / relative_spread(theirs),
                )
            )
    return {name: _summary(numpy.array(rows)) for name, rows in measured.items()}


def _summary(rows: numpy.ndarray) -> dict:
    ratio, share, spread = rows.T
    held = (abs(ratio - 1) <= 0.03, share <= SHARE, spread <= 1)
    return {
        "ratio": [round(float(q), 3) for q in numpy.quantile(ratio, (0.1, 0.5, 0.9))],
        "share": round(float(numpy.median(share)), 3),
        "spread_over_theirs": [round(float(q), 2) for q in numpy.quantile(spread, (0.1, 0.5, 0.9))],
        "ratio_share_spread_held": [round(float(h.mean()), 2) for h in held],
        "all_held": round(float(numpy.logical_and.reduce(held).mean()), 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--seconds", type=float, default=60.0, help="length of each recording, at least 30"
    )
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    report = {}
    for name in ("5 µs", "100 µs"):
        recording = Recording(CALLS[name], max(30.0, arguments.seconds))
        quantiles = numpy.quantile(
            recording.wall / recording.calls * 1e6, (0.05, 0.25, 0.5, 0.75, 0.95)
        )
        print(
            f"{name}: 5, 25, 50, 75 and 95 % of the grains took",
            *(f"{q:.3g}" for q in quantiles),
            "µs a call",
        )
        print(
            f"  {'rule':45s} {'ratio':>23s} {'share':>6s} {'spread / theirs':>20s} {'held':>19s}  all"
        )
        report[name] = replay(recording)
        for rule, found in report[name].items():
            ratio, spread, held = (
                " ".join(f"{value:5.3g}" for value in found[key])
                for key in ("ratio", "spread_over_theirs", "ratio_share_spread_held")
            )
            print(
                f"  {rule:45s} {ratio:>23s} {found['share']:6.3f} {spread:>20s} {held:>19s} {found['all_held']:4.2f}"
            )
    if arguments.json:
        arguments.json.write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main()
