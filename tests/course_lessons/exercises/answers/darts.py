"""Answers to the exercises of lesson 10."""

CONTEXT = """
from types import SimpleNamespace

from course_tools.estimate import find_chip

# Neither Darts nor a clock is needed to judge a choice.
many_series, nhits = (lambda count: None), (lambda series, batch_size: None)


def measured_s(model, batch):
    return 0.05


def estimated(model, batch, chip):
    return SimpleNamespace(total_s=0.005)
"""

WRONG = {
    "choice": [
        ("def my_choice():\n    return 0.05, 0.005", "three things, but you return 2"),
        ("def my_choice():\n    return 0.05, 0.005, 'stay'", "the GPU is faster"),
        ("def my_choice():\n    return 0.05, 0.005, 'measure'", "it is decided"),
        ("def my_choice():\n    return 0.001, 0.005, 'rent'", "your CPU is faster"),
        ("def my_choice():\n    return 0.01, 0.005, 'rent'", "does not decide"),
        ("def my_choice():\n    return 0.05, 0.005, 'A100'", "Choose one of"),
        ("def my_choice():\n    return 0, 0.005, 'stay'", "above 0"),
    ],
    "core": [
        ("my_arguments = {'tpu_cores': [4], 'max_epochs': 3}", "has left the Trainer"),
        ("my_arguments = {'devices': [3], 'max_epochs': 3}", "asks for a TPU"),
        ("my_arguments = {'accelerator': 'tpu', 'devices': [4]}", "the fifth one"),
        ("my_arguments = {'accelerator': 'tpu', 'devices': 4}", "a list says which cores"),
        ("my_arguments = {'accelerator': 'tpu', 'devices': [3]}", "1,000 epochs"),
    ],
}

RIGHT = {
    "choice": [
        "def my_choice():\n    return [0.01, 0.005, 'measure']",
        "def my_choice():\n    return 0.001, estimated(None, 1, None), 'stay'",
        "def my_choice():\n    return SimpleNamespace(median_s=1.0), 0.1, 'rent'",
    ],
    "core": [
        "from course_tools.old_code.trainer_arguments import modernize\n"
        "my_arguments = modernize({'tpu_cores': [4], 'max_epochs': 3})",
        "my_arguments = dict(accelerator='tpu', devices=(3,), max_epochs=3)",
    ],
}
