"""The pictures of lesson 9 show the figures that they were given."""

import itertools

import pytest
import torch
from course_lessons.memory import pictures
from torch import nn

from course_tools.estimate import estimate_memory


@pytest.fixture
def drawn(monkeypatch):
    """The axes of each picture, in the order in which they were drawn."""
    drawn, make = [], pictures.lecture_axes

    def lecture_axes(*texts):
        drawn.append(make(*texts))
        return drawn[-1]

    monkeypatch.setattr(pictures, "lecture_axes", lecture_axes)
    return drawn


def test_a_parameter_has_its_bytes_by_part_with_each_optimizer(drawn):
    layers = nn.Sequential(*(nn.Linear(256, 256) for _ in range(4)))
    shown = pictures.draw_bytes(layers, torch.empty(1, 256), {"Adam": "adam", "SGD": "sgd"})
    widths = [round(bar.get_width(), 1) for bar in drawn[0].patches]
    # parameter, gradient, state, copy: first of Adam and then of SGD
    assert widths == [4, 4, 4, 4, 8, 0, 4, 0]
    assert shown.alt == "Bytes for each parameter by optimizer: Adam 20.0, SGD 8.0."


def test_each_rank_holds_another_share_under_fsdp_and_everything_under_ddp(drawn):
    pictures.draw_holders(4)
    held = [bar for bar in drawn[0].patches if bar.get_facecolor()[:3] != (1, 1, 1)]
    heights = [bar.get_height() for bar in held]
    assert heights == [1.0] * 12 + [0.25] * 12
    assert [bar.get_y() for bar in held[12::3]] == [0, 0.25, 0.5, 0.75]


def test_checkpointing_holds_the_results_of_one_block(drawn):
    pictures.draw_checkpointing(blocks=5, now=3)
    again = [bar for bar in drawn[0].patches if bar.get_hatch() == "/" and bar.get_y() < 3]
    assert len(again) == 3 and {bar.get_y() for bar in again} == {2}


def test_each_cure_is_drawn_relative_to_the_first(drawn):
    shown = pictures.draw_cures(
        {"baseline": 400, "checkpointing": 100}, {"baseline": 2.0, "checkpointing": 2.6}
    )
    assert [bar.get_width() for bar in drawn[0].patches] == [1, 0.25, 1, 1.3]
    assert "checkpointing 25% and 130%" in shown.alt


def test_a_cure_that_takes_forty_times_as_long_leaves_the_others_to_be_seen(drawn):
    shown = pictures.draw_cures({"baseline": 400, "bf16": 300}, {"baseline": 2.0, "bf16": 83})
    assert (
        drawn[0].patches[-1].get_width() == pictures.LONGEST and "bf16 75% and 4150%" in shown.alt
    )
    assert drawn[0].texts[-1].get_text() == "time 42, off the scale"


def test_neighbours_in_a_stack_differ_without_their_colours(drawn, monkeypatch):
    monkeypatch.setattr("course_tools.figures.lecture_axes", pictures.lecture_axes)
    estimate_memory(nn.Linear(1000, 1000), torch.empty(1, 1000), batch=2).plot()
    bands = drawn[-1].collections
    assert len(bands) == 4
    assert all(one.get_hatch() != other.get_hatch() for one, other in itertools.pairwise(bands))


def test_the_title_says_what_takes_most_of_the_memory(drawn, monkeypatch):
    monkeypatch.setattr("course_tools.figures.lecture_axes", pictures.lecture_axes)
    estimate_memory(nn.Linear(1000, 1000), torch.empty(1, 1000), batch=2).plot()
    assert drawn[-1].get_title("left") == "The optimizer is 60% of 20 MB at the peak"
