"""Answers to the exercises of lesson 8."""

CONTEXT = """
import torch
from course_tools.estimate import estimate
my_model, my_inputs = torch.nn.Linear(64, 64), torch.rand(1, 64)
prices = {"T4": 0.5, "A100": 2.0}
def ask(**more):
    asked = {"batch": 64, "samples": 10**9, "devices": ["T4", "A100", "H100"], "prices": prices}
    return estimate(my_model, my_inputs, **asked | more)
AT_HOME = ask(deadline_hours=1e6, this_machine=1e-3)
UNPRICED = ask(deadline_hours=1e6, devices=["T4", "A100", "MI300X"])
"""
LATE = "ask(deadline_hours=1e-3)"

RIGHT = {
    "rent": [
        "def my_rent():\n    found = ask(deadline_hours=1e6)\n    return found, 'T4'",
        f"my_rent = lambda: ({LATE}, None)",
        "my_rent = lambda: (ask(deadline_hours=1e6), 'tesla t4')",
        "my_rent = lambda: (ask(deadline_hours=1e6), ask().cheapest())",
    ],
    "speed_up": ["my_claim = ['C', 2]", "my_claim = ('c', 2.0)"],
}

WRONG = {
    "rent": [
        ("my_rent = lambda: (ask(deadline_hours=1e6), 'A100')", "costs less"),
        (f"my_rent = lambda: ({LATE}, 'A100')", "has to lie before it"),
        ("my_rent = lambda: (AT_HOME, 'T4')", "your own machine costs less"),
        ("my_rent = lambda: (ask(), 'T4')", "no deadline"),
        ("my_rent = lambda: (ask(deadline_hours=1e6), 'B200')", "not among the devices"),
        ("my_rent = lambda: (ask(deadline_hours=1e6), None)", "the T4 meets the deadline"),
        ("my_rent = lambda: (UNPRICED, 'MI300X')", "no price for the MI300X"),
        ("my_rent = lambda: 'T4'", "a pair"),
    ],
    "speed_up": [
        ("my_claim = ('A', 6.0)", "compares fp32 with bf16"),
        ("my_claim = ('B', 20.0)", "batch 1 with batch 256"),
        ("my_claim = ('D', 8.0)", "that are skipped"),
        ("my_claim = ('E', 2.0)", "no E"),
        ("my_claim = ('C', 0.5)", "is not that ratio"),
        ("my_claim = ('C', 'two')", "a number"),
        ("my_claim = 2.0", "a pair"),
        ("my_claim = ('C',)", "its length is 1"),
    ],
}
