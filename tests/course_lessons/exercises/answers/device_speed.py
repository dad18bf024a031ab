"""Answers to the exercises of lesson 5."""

CONTEXT = """
import statistics
import time

import numpy as np
import torch

from course_lessons.device_speed import exercises as ex
"""

TIMER = """
def my_timer(fn, wait, clock):
    {warm_up}
    readings = []
    for _ in range({count}):
        start = clock()
        {timed}
        readings.append(clock() - start)
    return {result}
"""
GOOD = {
    "warm_up": "fn(); wait()",
    "count": "9",
    "timed": "fn(); wait()",
    "result": "statistics.median(readings)",
}
SPEED_UP = """
def my_speed_up(old, new, seconds):
    if {differ}:
        raise ValueError("they differ")
    return {result}
"""
RATIO = "seconds(old) / seconds(new)"
NO_ALLCLOSE = (
    "def my_speed_up(old, new, seconds):\n    if not torch.allclose(old(), new()):\n        "
)
CLOCKED = """
def clocked(fn):
    start = time.perf_counter()
    fn()
    return time.perf_counter() - start
"""


def timer(**changes: str) -> str:
    return TIMER.format(**{**GOOD, **changes})


RIGHT = {
    "typical": [
        "my_typical_ms = 4.45",
        "my_typical_ms = np.median(list(ex.READINGS_MS)[1:])",
        "my_typical_ms = torch.tensor([4.6, 4.3, 4.4, 31.0, 4.5, 4.4], dtype=torch.float64).quantile(0.5)",
    ],
    "timer": [
        timer(result="np.median(readings)", count="5"),
        timer(result="torch.tensor(readings).median()", warm_up="[fn() for _ in range(3)]; wait()"),
        timer(result="min(readings)"),
        """
class Timer:
    def __call__(self, fn, wait, clock):
        fn()
        wait()
        blocks = []
        while len(blocks) < 7:
            wait()
            start = clock()
            for _ in range(10):
                fn()
            wait()
            blocks.append((clock() - start) / 10)
        return sorted(blocks)[3]


my_timer = Timer()
""",
        """
def my_timer(fn, wait, clock):
    fn(), wait()
    looks = [clock()]
    for _ in range(9):
        fn(), wait()
        looks.append(clock())
    return np.median(np.diff(looks))
""",
    ],
    "speed_up": [
        SPEED_UP.format(differ="not np.allclose(old().numpy(), new().numpy())", result=RATIO),
        """
def my_speed_up(old, new, seconds):
    torch.testing.assert_close(new(), old())
    return torch.tensor(seconds(old)) / seconds(new)
""",
        """
def my_speed_up(old, new, seconds):
    assert ((old() - new()).abs() <= 1e-4).all(), "not the same"
    new_s, old_s = seconds(lambda: new()), seconds(lambda: old())
    return old_s / new_s
""",
        "class Differ(Exception): pass\n"
        + SPEED_UP.format(differ="not torch.allclose(old(), new())", result=RATIO).replace(
            "ValueError", "Differ"
        ),
        SPEED_UP.format(differ="not (old() - new()).abs().max() < 1e-4", result=RATIO),
    ],
    "crossover": [
        """
def my_crossover(sizes, cpu_s, gpu_s):
    wins = [g < c for c, g in zip(cpu_s, gpu_s)]
    for k, size in enumerate(sizes):
        if all(wins[k:]):
            return size
""",
        """
def my_crossover(sizes, cpu_s, gpu_s):
    found = None
    for size, c, g in sorted(zip(sizes, cpu_s, gpu_s), reverse=True):
        if g >= c:
            break
        found = np.int64(size)
    return found
""",
        """
def my_crossover(sizes, cpu_s, gpu_s):
    lost = (torch.tensor(gpu_s) >= torch.tensor(cpu_s)).nonzero().flatten().tolist()
    after = lost[-1] + 1 if lost else 0
    return torch.tensor(sizes)[after] if after < len(sizes) else None
""",
    ],
}

WRONG = {
    "typical": [
        ("my_typical_ms = statistics.mean(ex.READINGS_MS)", "with it the compilation"),
        ("my_typical_ms = statistics.mean(ex.READINGS_MS[1:])", "dominates"),
        ("my_typical_ms = statistics.median(ex.READINGS_MS)", "the median with the first call"),
        ("my_typical_ms = round(statistics.median(ex.READINGS_MS[1:]), 1)", "one that is rounded"),
        (
            "my_typical_ms = torch.tensor(ex.READINGS_MS[1:]).median()",
            "the lower of the middle two",
        ),
        ("my_typical_ms = statistics.mean([4.6, 4.4, 4.5, 4.4])", "4.475 is not the middle"),
        ("my_typical_ms = min(ex.READINGS_MS)", "luckiest reading"),
        ("my_typical_ms = ex.READINGS_MS[0]", "That is the first call"),
        ("my_typical_ms = 0.00445", "in seconds"),
        ("my_typical_ms = ex.READINGS_MS[1:]", "a number"),
        (
            "my_typical_ms = statistics.median([4.6, 4.3, 4.4, 4.5, 4.4])",
            "Did you leave out the disturbed reading too",
        ),
        (
            "my_typical_ms = np.mean([4.6, 4.3, 4.4, 4.5, 4.4])",
            "Did you leave out the disturbed reading too",
        ),
        (
            "my_typical_ms = statistics.mode(ex.READINGS_MS)",
            "Did you leave out the disturbed reading too",
        ),
    ],
    "timer": [
        (timer(timed="fn()"), "wait() after fn()"),
        (timer(timed="fn()", result="statistics.median(readings); wait()"), "wait() after fn()"),
        (timer(warm_up="pass", result="statistics.mean(readings)"), "to warm up"),
        (timer(warm_up="pass", count="1"), "to warm up"),
        (timer(count="1"), "matter of luck"),
        (timer(result="readings[-1]"), "One disturbed call dominates"),
        (
            timer()
            .replace("start = clock()", "fn(); start = clock()")
            .replace("        fn(); wait()\n", "        wait()\n"),
            "On a CPU fn() returns when its work is done",
        ),
        (timer().replace("clock() - start", "start - clock()"), "your timer says -0.01"),
        (timer().replace("clock() - start", "(clock() - start) / 9"), "your timer says 0.0011"),
        (timer(result="statistics.mean(readings)"), "A median resists it"),
        (
            timer(warm_up="fn()", count="3", result="max(readings)").replace(
                "start = clock()", "wait(); start = clock()"
            ),
            "A median resists it",
        ),
        (timer(warm_up="pass", count="4", result="sorted(readings)[-1]"), "to warm up"),
        (timer().replace("clock()", "time.perf_counter()"), "Read the time from clock()"),
        (timer(result="1000 * statistics.median(readings)"), "your timer says 10"),
        (timer(timed="wait()", warm_up="pass"), "never called fn"),
        (
            """
def my_timer(fn, wait, clock):
    start = clock()
    for _ in range(100):
        fn()
    wait()
    return (clock() - start) / 100
""",
            "to warm up",
        ),
        (
            """
def my_timer(fn, wait, clock):
    fn()
    readings = []
    for _ in range(3):
        start = clock()
        fn()
        wait()
        readings.append(clock() - start)
    return readings[0]
""",
            "A call takes 0.01 seconds",
        ),
    ],
    "speed_up": [
        (SPEED_UP.format(differ="False", result=RATIO), "twice the right answer"),
        (
            SPEED_UP.format(differ="not torch.equal(old(), new())", result=RATIO),
            "They differ by rounding only, but you raise ValueError",
        ),
        *(
            (
                SPEED_UP.format(differ="not torch.equal(old(), new())", result=RATIO).replace(
                    "ValueError", error
                ),
                error,
            )
            for error in ("Exception", "AssertionError")
        ),
        *(
            (f"{NO_ALLCLOSE}{slip}\n    return {RATIO}\n", "not by mistake")
            for slip in ("raise 'no'", "raise Differs()")
        ),
        *(
            (f"{NO_ALLCLOSE}return {what}\n    return {RATIO}\n", "raise an error")
            for what in ("0", "ValueError('no')")
        ),
        (
            SPEED_UP.format(
                differ="not torch.allclose(old(), new())", result="clocked(old) / clocked(new)"
            )
            + CLOCKED,
            "Time both with `seconds`",
        ),
        (
            SPEED_UP.format(
                differ="not torch.allclose(old(), new())", result="seconds(new) / seconds(old)"
            ),
            "Upside down",
        ),
        (
            SPEED_UP.format(differ="not torch.isclose(old().sum(), new().sum())", result=RATIO),
            "in the wrong places",
        ),
        (
            SPEED_UP.format(differ="(old() - new()).abs().max() > 1e-4", result=RATIO),
            "A comparison with NaN",
        ),
        (
            """
def my_speed_up(old, new, seconds):
    ratio = seconds(old) / seconds(new)
    assert torch.allclose(old(), new())
    return ratio
""",
            "You timed first",
        ),
        (
            """
def my_speed_up(old, new, seconds):
    if torch.allclose(old(), new()):
        return seconds(old) / seconds(new)
""",
            "raise an error",
        ),
        (
            SPEED_UP.format(differ="not torch.allclose(old(), new(), atol=0.5)", result=RATIO),
            "wrong by 1 %",
        ),
        (
            """
def my_speed_up(old, new, seconds):
    if torch.allclose(old(), new()):
        return seconds(old) / seconds(new)
    return "they differ"
""",
            "you return `they differ`: raise an error",
        ),
        (
            SPEED_UP.format(
                differ="old().shape != new().shape", result="seconds(old) - seconds(new)"
            ),
            "is 4 times as fast",
        ),
    ],
    "crossover": [
        (
            "my_crossover = lambda sizes, cpu_s, gpu_s: "
            "next((s for s, c, g in zip(sizes, cpu_s, gpu_s) if g < c), None)",
            "wins for good from 1024 on",
        ),
        (
            "my_crossover = lambda sizes, cpu_s, gpu_s: next(s for s, c, g in zip(sizes, cpu_s, gpu_s) if c < g)",
            "where the CPU wins",
        ),
        (
            "my_crossover = lambda sizes, cpu_s, gpu_s: "
            "max([k for k, (c, g) in enumerate(zip(cpu_s, gpu_s)) if g >= c], default=-1) + 1",
            "a position in the list",
        ),
        (
            "my_crossover = lambda sizes, cpu_s, gpu_s: "
            "sizes[max([k for k, (c, g) in enumerate(zip(cpu_s, gpu_s)) if g >= c], default=-1) + 1]",
            "Say so with None. Your function raises IndexError",
        ),
        (
            "my_crossover = lambda sizes, cpu_s, gpu_s: "
            "(sizes + [sizes[-1]])[max([k for k, (c, g) in enumerate(zip(cpu_s, gpu_s)) if g >= c], default=-1) + 1]",
            "Say so with None",
        ),
        (
            "my_crossover = lambda sizes, cpu_s, gpu_s: sizes[-1]",
            "at 256 and 1024, and as long as the CPU at 64",
        ),
        (
            "my_crossover = lambda sizes, cpu_s, gpu_s: "
            "next((s for k, s in enumerate(sizes) if all(g <= c for c, g in zip(cpu_s[k:], gpu_s[k:]))), None)",
            "Your function says 64",
        ),
        (
            """
def my_crossover(sizes, cpu_s, gpu_s):
    for size, c, g in sorted(zip(sizes, cpu_s, gpu_s), reverse=True):
        if g >= c:
            break
        found = size
    return found
""",
            "Say so with None. Your function raises UnboundLocalError",
        ),
        (
            """
def my_crossover(sizes, cpu_s, gpu_s):
    last = max(k for k, (c, g) in enumerate(zip(cpu_s, gpu_s)) if g >= c)
    return sizes[last + 1] if last + 1 < len(sizes) else None
""",
            "the GPU wins everywhere, so from 16 on. Your function raises ValueError",
        ),
        (
            """
def my_crossover(sizes, cpu_s, gpu_s):
    won, previous = None, False
    for size, c, g in zip(sizes, cpu_s, gpu_s):
        if g < c and not previous:
            won = size
        previous = g < c
    return won
""",
            "loses at the largest size",
        ),
        (
            """
def my_crossover(sizes, cpu_s, gpu_s):
    lost = [k for k, (c, g) in enumerate(zip(cpu_s, gpu_s)) if g >= c]
    if not lost or lost[-1] == len(sizes) - 1:
        return None
    return sizes[lost[-1] + 1]
""",
            "so from 16 on",
        ),
    ],
}
