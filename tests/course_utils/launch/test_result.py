"""The file that a launch leaves."""

import json
from dataclasses import replace

import pytest

from course_utils.launch.result import RunResult

RESULT = RunResult("a.py:f", "ddp", "cpu", 2, [0.5, float("nan")], 1.5, "runs/last.ckpt")


def test_a_result_comes_back_as_it_was_saved(tmp_path):
    RESULT.save(tmp_path / "result.json")
    assert repr(RunResult.load(tmp_path / "result.json")) == repr(RESULT)


@pytest.mark.parametrize(
    ("ranks", "losses", "words"),
    [
        (2, [0.5, 0.3, 0.25], ["2 ranks on cpu", "0.5 in epoch 1, 0.25 in epoch 3"]),
        (1, [0.5], ["1 rank on cpu", "0.5 in epoch 1\n"]),
        (1, [], ["1.5 s", "runs/last.ckpt"]),
    ],
)
def test_a_result_shows_its_first_and_its_last_loss(ranks, losses, words):
    shown = repr(replace(RESULT, ranks=ranks, losses=losses))
    assert all(each in shown for each in words) and ("train_loss" in shown) == bool(losses)


TORN = ["", '{"training": "a.py:f", "stra', "null", "[]", json.dumps(vars(RESULT) | {"more": 1})]


@pytest.mark.parametrize("text", TORN)
def test_a_foreign_or_torn_result_is_refused_by_name(tmp_path, text):
    path = tmp_path / "result.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"result.json is not the result of a launch"):
        RunResult.load(path)
