"""Answers to the exercises of lesson 10."""

CONTEXT = """
# Neither Darts nor a clock is needed to judge a choice.
def step_s(batch, **device):
    return 0.05, None


def making_s(model):
    return 0.001


def estimate_s(model, batch):
    return 0.004, 0.006
"""

WRONG = {
    "choice": [
        ("def my_choice():\n    return 0.05, 0.005, 'rent'", "four things, but you return 3"),
        ("def my_choice():\n    return 0.05, 0.004, 0.006, 'stay'", "the GPU is faster"),
        ("def my_choice():\n    return 0.05, 0.004, 0.006, 'measure'", "the GPU is faster"),
        ("def my_choice():\n    return 0.001, 0.004, 0.006, 'rent'", "the GPU is slower"),
        ("def my_choice():\n    return 0.005, 0.004, 0.006, 'rent'", "too close to call"),
        ("def my_choice():\n    return 0.05, 0.006, 0.004, 'rent'", "least comes before"),
        ("def my_choice():\n    return 0.05, 0.004, 0.006, 'A100'", "Choose one of"),
        ("def my_choice():\n    return 0, 0.004, 0.006, 'stay'", "above 0"),
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
        "def my_choice():\n    return [0.005, *estimate_s(None, 1), 'measure']",
        "def my_choice():\n    return 0.001, 0.004, 0.006, 'stay'",
    ],
    "core": [
        "from course_tools.old_code.trainer_arguments import modernize\n"
        "my_arguments = modernize({'tpu_cores': [4], 'max_epochs': 3})",
        "my_arguments = dict(accelerator='tpu', devices=(3,), max_epochs=3)",
    ],
}
