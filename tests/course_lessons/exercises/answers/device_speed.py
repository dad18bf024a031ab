"""Answers to the exercises of lesson 6."""

CONTEXT = """
import statistics
import time

import numpy as np
import torch

from course_lessons.device_speed import exercises as ex
from course_tools import time_together
from course_tools.compare.time_together import Ratio

best = torch.device("cpu")


def my_step(device, size, **options):
    model = torch.nn.Linear(8, 8)
    optimizer = torch.optim.Adam(model.parameters(), **options)

    def step():
        model(torch.ones(size, 8)).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


def ratio(low, high):
    return Ratio((low + high) / 2, (low, high), 40)
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


def timer(**changes: str) -> str:
    return TIMER.format(**{**GOOD, **changes})


RIGHT = {
    "timer": [
        timer(result="np.median(readings)", count="5"),
        timer(result="torch.tensor(readings).median()", warm_up="[fn() for _ in range(3)]; wait()"),
        timer(timed="[fn() for _ in range(3)]; wait()", result="statistics.median(readings) / 3"),
    ],
    "own_step": [
        'my_verdict = [ratio(0.8, 0.9), "a"]',
        'my_verdict = (ratio(1.1, 1.3), " B")',
        'my_verdict = (ratio(0.999, 1.003), "too close to call")',
        # a small lead: either is right, since only a new process can tell
        'my_verdict = (ratio(1.01, 1.02), "too close to call")',
        'my_verdict = (ratio(1.15, 1.19), "b")',
    ],
}

WRONG = {
    "timer": [
        (timer(timed="fn()"), "wait() after fn()"),
        (timer(warm_up="pass", result="statistics.mean(readings)"), "the first call"),
        (timer(count="1"), "matter of luck"),
        (timer(result="statistics.mean(readings)"), "A median resists it"),
        (timer(result="min(readings)"), "as in a minimum"),
        (timer().replace("clock()", "time.perf_counter()"), "Read the time from clock()"),
        (timer(result="1000 * statistics.median(readings)"), "your timer says 10"),
        (timer(timed="wait()", warm_up="pass"), "never called fn"),
    ],
    "own_step": [
        ('my_verdict = (ratio(0.8, 0.9), "b")', "the other one is faster"),
        ('my_verdict = (ratio(0.999, 1.003), "b")', "too close to call"),
        ('my_verdict = (ratio(1.3, 1.4), "too close to call")', "one of them is faster"),
        ('my_verdict = (ratio(1.1, 1.3), "other")', "Choose"),
        ('my_verdict = (1.2, "b")', "ratio("),
    ],
}
