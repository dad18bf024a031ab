"""Answers to the exercises of lesson 7."""

CONTEXT = """
import torch
from torch.utils.data import DataLoader

from course_lessons.waiting import exercises as ex
from course_lessons.waiting.photographs import Photographs, make_step
from course_tools.timeline.bottleneck import find_bottleneck, judge
from course_tools.timeline.loop_record import LoopRecord

step = make_step()
slow_calls = judge(LoopRecord("cpu", "cpu", step_s=1.0, fetch_s=0.1))
slow_python = judge(LoopRecord("cpu", "cpu", step_s=1.0, fetch_s=0.1, python_s=0.8))
slow_loader_beside_arithmetic = judge(
    LoopRecord("cpu", "cpu", step_s=1.0, fetch_s=0.3, exposed=1.0, arithmetic_s=0.6)
)
"""

EPOCH = """
def my_epoch(step, loader):
    total = 0
    for batch in loader:
        total = total + step(batch){read}
    return total{end}
"""


RIGHT = {
    "read_once": [
        """
def my_epoch(step, loader):
    losses = [step(batch).detach() for batch in loader]
    return float(sum(losses)) / len(losses)
""",
        """
def my_epoch(step, loader):
    return torch.stack([step(batch).detach() for batch in loader]).mean().item()
""",
    ],
    "own_loop": [
        "my_loop = (slow_calls, 'launches')",
        "my_loop = (slow_loader_beside_arithmetic, 'loader')",
        "my_loop = (slow_loader_beside_arithmetic, 'Arithmetic')",
        "my_loop = (slow_python, 'own python')",
    ],
}

WRONG = {
    "read_once": [
        (EPOCH.format(read=".item()", end=" / len(loader)"), "reads values 20 times"),
        (EPOCH.format(read="", end=" / len(loader)"), "still on the device"),
        (EPOCH.format(read=".detach()", end=".item()"), "That is the sum"),
        (EPOCH.format(read="", end=".item() / len(loader)"), "graph of every loss"),
    ],
    "own_loop": [
        ("my_loop = (slow_calls, 'loader')", "The largest part is the launches: 90%"),
        ("my_loop = (slow_calls, 'num_workers=4')", "not the name of a part"),
        ("my_loop = ('launches', 'launches')", "what find_bottleneck returned"),
    ],
}
