"""How far to trust `time_call` and `time_together`, beside the timers that people use otherwise.

    python benchmarks/timing_fidelity.py [--only short,aa] [--repeats 15] [--json FILE]

Every figure is a ratio of measurements that took turns within one run, so that a noisy machine
disturbs both sides alike. A section prints what it found and whether its target was reached.
"""

import argparse
import datetime
import json
import os
import platform
import random
import statistics
import time
from pathlib import Path

import torch
from torch.utils.benchmark import Timer

from course_tools.compare.paired_timing import TimedCall, time_together
from course_utils.devices import pick_device
from course_utils.hardware.machine import cpu_name
from course_utils.timing import time_call

torch.manual_seed(0)
SMALL, MEDIUM = torch.randn(64), torch.randn(170, 170)
LARGE, HUGE = torch.randn(800, 800), torch.randn(2200, 2200)
CALLS = {
    "5 µs": lambda: SMALL * 2 + SMALL,
    "100 µs": lambda: MEDIUM @ MEDIUM,
    "10 ms": lambda: LARGE @ LARGE,
    "200 ms": lambda: HUGE @ HUGE,
}


def wall(work) -> tuple[float, object]:
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def relative_spread(values: list[float]) -> float:
    low, _, high = statistics.quantiles(values, n=4)
    return (high - low) / statistics.median(values)


def short(repeats: int) -> dict:
    """Time operations of 5 and 100 µs as blocked_autorange does, in a fraction of its time.

    The third contestant is blocked_autorange with no more time than `time_call` took: where the
    speed of the machine itself goes up and down, its spread says how much of ours is owed to the
    short time.

    The interquartile range of 30 medians is itself only known to about 20 %, too little to tell two
    spreads apart that differ by that much. So each contestant measures eight times in a repeat, and
    the ratio of the two spreads comes with its 95 % interval: where that includes 1, chance decides
    which of the two is the wider.
    """
    found = {}
    for name in ("5 µs", "100 µs"):
        ours, theirs, shorter = _in_turn(CALLS[name], 8 * repeats)
        ratio = statistics.median(a[1] / b[1] for a, b in zip(ours, theirs, strict=True))
        found[name] = {
            "ratio": ratio,
            "share_of_wall": statistics.median(
                a[0] / b[0] for a, b in zip(ours, theirs, strict=True)
            ),
            "spread": relative_spread([b for _, b in ours]),
            "their_spread": relative_spread([b for _, b in theirs]),
            "spread_over_theirs": _spread_ratio([b for _, b in ours], [b for _, b in theirs]),
            "their_spread_in_our_time": relative_spread([b for _, b in shorter]),
        }
    found["reached"] = all(
        abs(f["ratio"] - 1) <= 0.03
        and f["share_of_wall"] <= 1 / 20
        and f["spread"] <= f["their_spread"]
        for f in found.values()
    )
    return found


def _spread_ratio(these: list[float], those: list[float]) -> dict:
    """Return how many times as wide the spread of `these` is, and its bootstrapped 95 %
    interval.
    """
    generator, drawn = random.Random(0), []
    for _ in range(2000):
        one, other = (generator.choices(values, k=len(values)) for values in (these, those))
        drawn.append(relative_spread(one) / relative_spread(other))
    cuts = statistics.quantiles(drawn, n=40)
    return {
        "ratio": relative_spread(these) / relative_spread(those),
        "interval": [cuts[0], cuts[-1]],
    }


def _in_turn(fn, repeats: int) -> list[list]:
    """Return (wall seconds, median) of each repeat of `time_call`, of blocked_autorange, and of
    that in our time.
    """
    timer = Timer("fn()", globals={"fn": fn}, num_threads=1)
    found: list[list] = [[], [], []]
    for k in range(repeats):
        runs = [
            lambda: time_call(fn, device="cpu", threads=1).median_s,
            lambda: timer.blocked_autorange().median,
            lambda: (
                timer.blocked_autorange(min_run_time=found[0][-1][0] if found[0] else 0.01).median
            ),
        ]
        for which in (0, 1, 2) if k % 2 else (2, 1, 0):
            found[which].append(wall(runs[which]))
    return found


def aa(repeats: int) -> dict:
    """Compare a function with itself: the ratio is 1."""
    found, cpu = {}, pick_device("cpu")
    for name, max_s in (("100 µs", 1.0), ("10 ms", 4.0), ("200 ms", 40.0)):
        fn, errors, naive = CALLS[name], [], []
        for _ in range(repeats if name != "200 ms" else max(3, repeats // 3)):
            result = time_together(
                {"a": TimedCall(lambda fn=fn: fn(), cpu), "b": TimedCall(lambda fn=fn: fn(), cpu)},
                max_s=max_s,
            )
            errors.append(abs(result.ratio("a", "b").median - 1))
            first, second = (
                Timer("fn()", globals={"fn": fn}, num_threads=1)
                .blocked_autorange(min_run_time=0.2)
                .median
                for _ in range(2)
            )
            naive.append(abs(first / second - 1))
        found[name] = {
            "median_error": statistics.median(errors),
            "largest_error": max(errors),
            "blocked_autorange_median_error": statistics.median(naive),
            "blocked_autorange_largest_error": max(naive),
        }
    found["reached"] = all(
        f["median_error"] <= 0.005 and f["largest_error"] <= 0.02 for f in found.values()
    )
    return found


SECTIONS = {f.__name__: f for f in (short, aa)}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default=",".join(SECTIONS), help="sections, separated by commas")
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    report = {
        "date": datetime.date.today().isoformat(),
        "machine": {
            "cpu": cpu_name(),
            "python": platform.python_version(),
            "torch": torch.__version__,
        },
        "load_at_start": os.getloadavg(),
    }
    for name in arguments.only.split(","):
        seconds, found = wall(lambda name=name: SECTIONS[name](arguments.repeats))
        reached = found.get("reached")
        verdict = "reached" if reached else "NOT REACHED"
        print(f"{name}: {verdict} ({seconds:.0f} s). {SECTIONS[name].__doc__.splitlines()[0]}")
        print(
            json.dumps(found, indent=2, default=lambda x: round(x, 4), ensure_ascii=False),
            flush=True,
        )
        report[name] = found
    if arguments.json:
        arguments.json.write_text(json.dumps(report, indent=2, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
