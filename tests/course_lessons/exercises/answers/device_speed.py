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
DIFFER = "not torch.allclose(old(), new())"


def timer(**changes: str) -> str:
    return TIMER.format(**{**GOOD, **changes})


RIGHT = {
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
        SPEED_UP.format(differ="not (old() - new()).abs().max() < 1e-4", result=RATIO),
    ],
}

WRONG = {
    "timer": [
        (timer(timed="fn()"), "wait() after fn()"),
        (timer(warm_up="pass", result="statistics.mean(readings)"), "to warm up"),
        (timer(count="1"), "matter of luck"),
        (timer(result="statistics.mean(readings)"), "A median resists it"),
        (timer().replace("clock()", "time.perf_counter()"), "Read the time from clock()"),
        (timer(result="1000 * statistics.median(readings)"), "your timer says 10"),
        (timer(timed="wait()", warm_up="pass"), "never called fn"),
    ],
    "speed_up": [
        (SPEED_UP.format(differ="False", result=RATIO), "twice the right answer"),
        (SPEED_UP.format(differ="not torch.equal(old(), new())", result=RATIO), "rounding only"),
        (SPEED_UP.format(differ=DIFFER, result="seconds(new) / seconds(old)"), "Upside down"),
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
    ],
}
