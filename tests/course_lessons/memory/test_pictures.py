"""The pictures of lesson 9 show the figures that they were given."""

import torch
from course_lessons.memory import pictures
from course_lessons.memory.record import Record
from matplotlib.colors import to_hex
from torch import nn

from course_tools.estimate import estimate_memory
from course_tools.figures import YELLOW


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
    pictures.draw_cures({"baseline": 4, "bfloat16": 2}, {"baseline": 1.0, "bfloat16": 40.0})
    assert [bar.get_width() for bar in drawn[1].patches] == [1, 0.5, 1, 4]  # it is cut there
    assert "time 40, off the scale" in [text.get_text() for text in drawn[1].texts]


def test_the_title_says_what_takes_most_of_the_memory(drawn):
    estimate_memory(nn.Linear(1000, 1000), torch.empty(1, 1000), batch=2).plot()
    assert drawn[-1].get_title("left") == "The optimizer is 60% of 20 MB at the peak"


def test_each_rank_holds_all_under_ddp_and_another_share_under_fsdp(drawn):
    pictures.draw_holders(ranks=4)
    held = [box for box in drawn[0].patches if to_hex(box.get_facecolor()) != "#ffffff"]
    places = [(box.get_y(), box.get_height()) for box in held]
    assert places[:12] == [(0, 1)] * 12  # 4 ranks, each with parameters, gradients, optimizer
    assert places[12:] == [(rank / 4, 1 / 4) for rank in range(4) for _ in range(3)]


def test_checkpointing_keeps_no_inner_results_until_the_backward_pass_reaches_a_block(drawn):
    pictures.draw_checkpointing(blocks=5, now=3)
    boxes = {box.get_xy(): to_hex(box.get_facecolor()) for box in drawn[0].patches}
    inner = [
        [boxes[3 * block + 0.65, row] for block in range(5)] for row in range(3)
    ]  # the first result inside of each block
    again, white = boxes[3 * 3 + 0.65, 2], "#ffffff"
    assert inner == [[YELLOW.lower()] * 5, [white] * 5, [white] * 3 + [again, white]]
    inputs = [[boxes[3 * block, row] for block in range(5)] for row in range(3)]
    assert inputs[0] == inputs[1] and len(set(inputs[0])) == 1
    assert inputs[2] == [inputs[0][0]] * 4 + [white]  # block 5 is done and has freed its own
    assert again not in (white, *inner[0])


def test_the_measured_memory_is_drawn_in_mb_below_the_estimated_peak(drawn):
    found = estimate_memory(nn.Linear(1000, 1000), torch.empty(1, 1000), batch=2)
    pictures.draw_two_curves(Record((0.0, 0.5), (2_000_000, 5_000_000)), found)
    curve, peak = drawn[0].lines
    assert list(curve.get_ydata()) == [2, 5] and list(curve.get_xdata()) == [0, 0.5]
    assert list(peak.get_ydata()) == [found.tensors_bytes / 1e6] * 2
    assert drawn[0].get_ylim()[1] > found.tensors_bytes / 1e6


def test_a_verdict_is_wrong_where_the_estimate_stands_on_the_other_side_of_the_card(drawn):
    rows = [
        {"tensors": 3e9, "tensors_next": 7e9},
        {"tensors": 6e9, "tensors_next": None},
        {"tensors": 1e9, "tensors_next": 2e9},
    ]
    pictures.draw_questions(rows, {"context_bytes": 1e9, "gaps": 0.5}, 8e9)
    needed = [(line.get_xdata()[0], line.get_marker()) for line in drawn[0].lines[:-1]]
    # 1 GB and one and a half times the tensors, against 8 GB: those that fitted, then the others
    assert needed == [(2.5, "o"), (5.5, "o"), (10, "X"), (4, "X"), (11.5, "o")]
    assert drawn[0].get_title("left") == "3 of 5 verdicts are right"
    assert list(drawn[0].lines[-1].get_xdata()) == [8, 8]
