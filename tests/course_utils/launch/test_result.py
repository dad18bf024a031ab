"""The file that a launch leaves."""

import json

import pytest

from course_utils.launch.result import RunResult

RESULT = RunResult("a.py:f", "ddp", "cpu", 2, [0.5, float("nan")], 1.5, "runs/last.ckpt")


def test_a_result_comes_back_as_it_was_saved(tmp_path):
    RESULT.save(tmp_path / "result.json")
    assert repr(RunResult.load(tmp_path / "result.json")) == repr(RESULT)


@pytest.mark.parametrize(
    "change", [{"losses": "no"}, {"losses": [[1]]}, {"train_s": None}, {"ranks": "2"}, {"more": 1}]
)
def test_a_forged_result_is_refused_by_name(tmp_path, change):
    path = tmp_path / "result.json"
    path.write_text(json.dumps(vars(RESULT) | change))
    with pytest.raises(ValueError, match=r"result.json is not the result of a launch"):
        RunResult.load(path)


@pytest.mark.parametrize("text", ["", '{"training": "a.py:f", "stra', "null", "[]", "[" * 100_000])
def test_half_a_result_is_refused_by_name(tmp_path, text):
    path = tmp_path / "result.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"result.json is not the result of a launch"):
        RunResult.load(path)
