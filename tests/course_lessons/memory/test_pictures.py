"""The pictures of lesson 9 show the figures that they were given."""

import torch
from course_lessons.memory import pictures
from torch import nn

from course_tools.estimate import estimate_memory


def test_a_parameter_has_its_bytes_by_part_with_each_optimizer(drawn):
    layers = nn.Sequential(*(nn.Linear(256, 256) for _ in range(4)))
    shown = pictures.draw_bytes(layers, torch.empty(1, 256), {"Adam": "adam", "SGD": "sgd"})
    widths = [round(bar.get_width(), 1) for bar in drawn[0].patches]
    # parameter, gradient, state, copy: first of Adam and then of SGD
    assert widths == [4, 4, 4, 4, 8, 0, 4, 0]
    assert shown.alt == "Bytes per parameter by optimizer: Adam 20, SGD 8."
    assert drawn[0].get_xlim()[1] > 21  # with room for the longest bar's number


def test_each_cure_is_drawn_relative_to_the_first(drawn):
    shown = pictures.draw_cures(
        {"baseline": 400, "checkpointing": 100}, {"baseline": 2.0, "checkpointing": 2.6}
    )
    assert [bar.get_width() for bar in drawn[0].patches] == [1, 0.25, 1, 1.3]
    assert "checkpointing 25% and 130%" in shown.alt


def test_the_title_says_what_takes_most_of_the_memory(drawn):
    estimate_memory(nn.Linear(1000, 1000), torch.empty(1, 1000), batch=2).plot()
    assert drawn[-1].get_title("left") == "The optimizer is 60% of 20 MB at the peak"
