"""Results on disk."""

from dataclasses import replace

import pytest
from measured import measured

from course_tools.compare.results import Result, describe_machine

ONE = measured(0.01, 0.02, warnings=("noise",))
GPU = "a <GPU> & co"
PUBLISHED = replace(
    ONE, label=GPU, kind="cuda", device=GPU, threads=None, rounds_s=(0.001,), warnings=()
)
SAVED = Result(
    (ONE, PUBLISHED),
    date="2026-11-20",
    command="a command",
    versions={"torch": "2.9.0", "driver": "575.57.08"},
    machine={"cpu": "a cpu"},
)


def test_what_was_saved_is_loaded(tmp_path):
    SAVED.save(tmp_path / "mine.json")
    assert Result.load(tmp_path / "mine.json") == SAVED


def test_a_call_may_take_from_a_nanosecond_to_years():
    assert measured(1e-9, 1e9).median_s == pytest.approx(5e8)


def test_a_result_says_what_made_it():
    made = describe_machine()
    assert {"cpu", "system"} <= made["machine"].keys()
    assert {"python", "torch", "course"} <= made["versions"].keys()
    assert Result(**made).date


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"version": 2', '"version": 1', "its schema and version are"),
        ('"label"', '"lable"', "lable"),
        ('"warnings"', '"worries"', "warnings"),
        ("{", "", "Extra data"),
        ("{", "[", "delimiter"),
        ("{", "[" * 100_000, "while decoding a JSON array"),  # deeper than Python goes
        ('"size": 16', '"size": 0', "size is 0"),
        ('"size": 16', '"size": "16"', "size is '16'"),
        ('"items": 16.0', '"items": null', "items is None"),
        ('"label": "cpu, 1 thread"', '"label": ["cpu"]', "label is ['cpu']"),
        ("0.01,", "NaN,", "rounds_s is"),
        ("0.01,", "1e-320,", "rounds_s is (1e-320, 0.02), not between 1e-15 and 1e+30"),
        ("0.01,", "Infinity,", "rounds_s is"),
        ('"size": 16', '"size": 1' + "0" * 400, "size is 1000"),
        ('"items": 16.0', '"items": 1' + "0" * 5000, "4300 digits"),
        ('"threads": 1', '"threads": "one"', "threads is 'one'"),
        ('"noise"', "7", "warnings are (7,)"),
        ('"date": "2026-11-20"', '"date": 2026', "date is 2026"),
        ('"torch": "2.9.0",', '"torch": "2.9.0"', "delimiter"),
        ('"machine": {', '"machine": [], "more": {', "unexpected keyword"),
        ("0.01,", '"abc",', "rounds_s is"),
    ],
)
def test_a_file_that_is_no_result_is_an_error_with_its_name(tmp_path, old, new, message):
    SAVED.save(tmp_path / "mine.json")
    text = (tmp_path / "mine.json").read_text().replace(old, new, 1)
    (tmp_path / "odd.json").write_text(text)
    wrong = r"odd\.json is not a result that this course can read"
    with pytest.raises(ValueError, match=wrong) as refused:
        Result.load(tmp_path / "odd.json")
    assert message in str(refused.value)


def test_a_missing_file_is_said_to_be_missing(tmp_path):
    with pytest.raises(FileNotFoundError):
        Result.load(tmp_path / "none.json")


def test_two_kinds_of_work_are_neither_drawn_nor_tabled():
    both = Result((ONE, replace(ONE, workload="RNN step")))
    for show in (both.plot, both.to_frame):
        with pytest.raises(ValueError, match="this result holds 2 of them"):
            show()


@pytest.mark.parametrize("other", [{"workload": "RNN step"}, {"precision": "bf16"}, {"unit": "B"}])
def test_a_picture_shows_one_kind_of_work_also_from_elsewhere(other):
    with pytest.raises(ValueError, match="Pass results of the same work"):
        Result((ONE,)).plot([Result((replace(ONE, **other),))])
