"""The result of a launch, and what is shown while it runs."""

import io
import json
import math
from dataclasses import replace

import pytest
from tqdm import tqdm

from course_utils.launch.view import RunResult, View

RESULT = RunResult(
    "<b>.py:f",
    "ddp",
    2,
    8,
    [1.5, math.nan],
    {"train_loss": math.inf},
    [16, 17],
    1234.5,
    "runs/x/last.ckpt",
    0.5,
    9.0,
)


def test_a_result_becomes_json_with_null_for_what_is_no_number():
    data = json.loads(
        RESULT.to_json(), parse_constant=lambda name: pytest.fail(f"{name} is not JSON")
    )
    assert data["losses"] == [1.5, None] and data["metrics"] == {"train_loss": None}
    assert data["samples_per_rank"] == [16, 17] and data["steps"] == 8


@pytest.mark.parametrize(
    ("losses", "said"),
    [
        ([0.5, 0.4], ""),
        ([], ""),
        ([None, None], ""),
        ([math.nan, 0.4], ""),  # a step was left out, and the training went on
        ([0.5, math.inf, math.nan], "the loss has been nan since epoch 2: lower the learning rate"),
        ([math.inf], "the loss has been inf since epoch 1: lower the learning rate"),
    ],
)
def test_a_result_says_since_when_its_loss_is_no_finite_number(losses, said):
    advice = replace(RESULT, losses=losses).advice()
    assert advice.startswith(said) and bool(advice) == bool(said)


def test_a_loss_that_training_step_did_not_return_is_no_nan():
    result = replace(RESULT, losses=[0.5, None])
    assert "0.5 in epoch 1, not returned by training_step in epoch 2" in repr(
        result
    ) and "nan" not in repr(result)
    assert json.loads(result.to_json())["losses"] == [0.5, None]
    stream = io.StringIO()
    view = View(stream, bar=False)
    view.begin(steps=4, done=0, epochs=1)
    view.epoch(1, None)
    assert stream.getvalue() == "[launch] epoch 1/1: loss not returned by training_step\n"


def test_a_result_shows_itself_and_escapes_what_it_was_given():
    assert "samples per rank  16, 17" in repr(RESULT) and "0.50 s of 9.0 s" in repr(RESULT)
    assert "&lt;b&gt;.py:f" in RESULT._repr_html_() and "<b>" not in RESULT._repr_html_()


def test_without_a_bar_there_is_a_line_for_the_first_and_the_last_epoch_and_few_between():
    stream = io.StringIO()
    view = View(stream, bar=False)
    view.line("rank 1", "hello")
    view.begin(steps=400, done=0, epochs=100)
    for epoch in range(1, 101):
        view.steps(epoch * 4)
        view.epoch(epoch, 1 / epoch)
    view.close()
    lines = stream.getvalue().splitlines()
    assert lines[0] == "[rank 1] hello" and lines[1] == "[launch] epoch 1/100: loss 1"
    assert lines[-1] == "[launch] epoch 100/100: loss 0.01" and len(lines) < 10


def test_the_bar_stands_where_the_steps_are_also_after_a_resume(capsys):
    view = View(io.StringIO(), bar=True)
    view.begin(steps=40, done=20, epochs=10)
    view.steps(19)
    view.steps(30)
    view.epoch(8, 0.25)
    view.close()
    shown = capsys.readouterr().err
    assert "30/40" in shown and "epoch 8/10, loss 0.25" in shown


def test_a_bar_that_an_interrupt_has_left_half_made_hides_no_line(monkeypatch):
    def failing():
        raise AttributeError("container")

    half = tqdm.__new__(tqdm)
    half.start_t, half.disable = 0.0, True
    stream = io.StringIO()
    view = View(stream, bar=True)
    view.begin(steps=40, done=0, epochs=10)
    bar = view._bar
    with monkeypatch.context() as broken:
        broken.setattr(bar, "display", failing)
        view.close()
    view.line("launch", "stopped")
    bar.close()
    assert stream.getvalue() == "[launch] stopped\n"


def test_a_bar_that_cannot_be_drawn_any_more_is_closed(monkeypatch):
    def failing():
        raise AttributeError("container")

    view = View(io.StringIO(), bar=True)
    view.begin(steps=40, done=0, epochs=10)
    bar = view._bar
    monkeypatch.setattr(bar, "refresh", failing)
    view.close()
    assert bar.disable and bar not in tqdm._instances
