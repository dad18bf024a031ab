"""Answers to the exercises of lesson 10."""

CONTEXT = """
# Neither Darts nor a clock is needed to judge a choice.
def step_s(batch, **device):
    return 0.05, 0.003, None


def estimate_s(model, batch):
    return 0.004, 0.006
"""

WRONG = {
    "choice": [
        ("def my_choice():\n    return 0.05, 0.005, 'rent'", "four things, but you return 3"),
        ("def my_choice():\n    return 0.05, 0.004, 0.006, 'stay'", "the GPU is faster"),
        ("def my_choice():\n    return 0.001, 0.004, 0.006, 'rent'", "the GPU is slower"),
        ("def my_choice():\n    return 0.005, 0.004, 0.006, 'rent'", "too close to call"),
        ("def my_choice():\n    return 0.05, 0.006, 0.004, 'rent'", "least comes before"),
        ("def my_choice():\n    return 0.05, 0.004, 0.006, 'A100'", "Choose one of"),
        ("def my_choice():\n    return 0, 0.004, 0.006, 'stay'", "above 0"),
    ],
    "stride": [
        ("my_stride = 1", "at least 5"),
        ("my_stride = 24", "same hour of the day"),
        ("my_stride = 7", "24 of the 168"),
        ("my_stride = 10", "84 of the 168"),
        ("my_stride = 5.5", "whole number"),
        ("my_stride = 1009", "more than a week"),
    ],
}

RIGHT = {
    "choice": [
        "def my_choice():\n    return [0.005, *estimate_s(None, 1), 'measure']",
        "def my_choice():\n    return 0.001, 0.004, 0.006, 'stay'",
    ],
    "stride": ["my_stride = 11", "my_stride = 5.0"],
}
