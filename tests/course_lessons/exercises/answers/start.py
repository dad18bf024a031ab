"""Answers to the exercises of lesson 0."""

CONTEXT = """
from course_lessons.data.models import ResNet50
from course_utils.devices import pick_device

best = pick_device()
network = ResNet50()
"""

WEIGHTS = "sum(p.numel() for p in network.parameters())"
MEMORY = "(best.memory_bytes or pick_device('cpu').memory_bytes)"

RIGHT = {
    "speed_up": [
        "my_speed_up = lambda load_s, c, times: round((load_s + c) / (load_s + c / times), 1)"
    ],
    "copies": [f"my_copies = {MEMORY} / 4 / {WEIGHTS}", f"my_copies = round({MEMORY} / 102.2e6)"],
}

WRONG = {
    "speed_up": [
        (
            "def my_speed_up(load_s, compute_s, times):\n    return times",
            "loading does not become faster",
        ),
        (
            "my_speed_up = lambda load_s, c, times: load_s + c / times",
            "seconds it takes",
        ),
        (
            "my_speed_up = lambda load_s, c, times: (load_s + c) / times",
            "become 3 times as fast",
        ),
        ("my_speed_up = lambda load_s, c, times: (load_s + c / times) / (load_s + c)", "Turn it"),
    ],
    "copies": [
        (f"my_copies = {MEMORY} // {WEIGHTS}", "four bytes"),
        (f"my_copies = {MEMORY} / 1e9 / (4 * {WEIGHTS})", "both in bytes"),
        (f"my_copies = 4 * {WEIGHTS} / {MEMORY}", "Divide the memory by the weights"),
        ("my_copies = 3", "that is not 3 copies"),
    ],
}
