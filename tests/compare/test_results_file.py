"""Comparisons on disk: whole or not at all, and never believed."""

import copy
import json
import os

import pytest

from course_utils.compare.results import Comparison, Row
from course_utils.compare.results_file import LARGEST_BYTES, ForeignFile, load, made_here, save

ROW = Row(16, "cpu, 1 thread", "cpu", "a cpu", 1, 0.5, (0.01, 0.02), 16.0, 0.0, ("noise",))
SAVED = Comparison("CNN step", "batch", "samples", "fp32", False, (ROW,), {"date": "2026-11-20", "torch": "2.9.0"})


def test_what_was_saved_is_loaded(tmp_path):
    SAVED.save(tmp_path / "mine.json")
    assert Comparison.load(tmp_path / "mine.json") == SAVED
    assert os.listdir(tmp_path) == ["mine.json"]


def test_a_file_says_what_made_it(tmp_path):
    made = made_here()
    assert {"date", "machine", "system", "python", "torch"} <= made.keys()


def test_a_failed_save_leaves_the_old_file(tmp_path, monkeypatch):
    save(SAVED, tmp_path / "mine.json")
    monkeypatch.setattr(os, "replace", lambda *paths: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        save(SAVED, tmp_path / "mine.json")
    assert load(tmp_path / "mine.json") == SAVED


@pytest.mark.parametrize("part", [0, 1, 50, 200])
def test_a_torn_file_is_refused(tmp_path, part):
    save(SAVED, tmp_path / "mine.json")
    torn = tmp_path / "torn.json"
    torn.write_text((tmp_path / "mine.json").read_text()[:part])
    with pytest.raises(ForeignFile, match=r"torn.json is no whole JSON file .* Save the comparison again"):
        load(torn)


@pytest.mark.parametrize("content", [b"\x80\x04\x95\xff", b"[" * 100_000, b"\xff\xfe"])
def test_a_file_that_is_no_text_is_refused(tmp_path, content):
    (tmp_path / "odd.json").write_bytes(content)
    with pytest.raises(ForeignFile, match="is no whole JSON file"):
        load(tmp_path / "odd.json")


def test_a_huge_file_is_refused_unread(tmp_path):
    with open(tmp_path / "huge.json", "wb") as file:
        file.truncate(LARGEST_BYTES + 1)
    with pytest.raises(ForeignFile, match="no comparison is that large"):
        load(tmp_path / "huge.json")


def change(where: str, value: object) -> dict:
    """Return a change of one value at a path such as rows.0.size; the value `...` takes it away."""
    return {"where": where.split("."), "value": value}


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (change("schema", "something else"), "its schema is not 'accelerator-course comparison'"),
        (change("version", 2), "its version is not 1, which is the one that this copy of the course knows"),
        (change("workload", ...), "the comparison has not the right names, see 'workload'"),
        (change("extra", 1), "see 'extra'"),
        (change("workload", 3), "workload is no text of at most 300 characters"),
        (change("workload", "x" * 301), "workload is no text"),
        (change("tf32", "yes"), "tf32 is neither true nor false"),
        (change("rows", []), "rows is no list of 1 to 2,000 values"),
        (change("rows", {}), "rows is no list"),
        (change("made", []), "made is no JSON object"),
        (change("rows.0", 7), "row 0 is no JSON object"),
        (change("rows.0.kind", "abacus"), "kind in row 0 is none of cpu, cuda"),
        (change("rows.0.size", 1.5), "size in row 0 is no whole number from 1 on"),
        (change("rows.0.size", True), "size in row 0 is no whole number"),
        (change("rows.0.rounds_s", []), "rounds_s in row 0 is no list of 1"),
        (change("rows.0.rounds_s", ["1"]), "rounds_s in row 0 is no number"),
        (change("rows.0.rounds_s", [-1]), "rounds_s in row 0 is no number"),
        (change("rows.0.rounds_s", [float("nan")]), "rounds_s in row 0 is no number"),
        (change("rows.0.first_s", float("inf")), "first_s in row 0 is no number"),
        (change("rows.0.warnings", [1]), "warnings in row 0 is no text"),
        (change("rows.0.label", ...), "row 0 has not the right names, see 'label'"),
    ],
)
def test_a_file_that_does_not_fit_is_refused_with_the_reason(tmp_path, edit, message):
    save(SAVED, tmp_path / "mine.json")
    content = json.loads((tmp_path / "mine.json").read_text())
    *path, last = edit["where"]
    inner = content
    for step in path:
        inner = inner[int(step) if step.isdigit() else step]
    last = int(last) if last.isdigit() else last
    if edit["value"] is ...:
        del inner[last]
    else:
        inner[last] = copy.deepcopy(edit["value"])
    (tmp_path / "odd.json").write_text(json.dumps(content))
    with pytest.raises(ForeignFile, match=r"odd\.json is no comparison that this course can read") as refused:
        load(tmp_path / "odd.json")
    assert message in str(refused.value)


@pytest.mark.parametrize("content", ["[]", "3", "null", '"text"'])
def test_json_of_another_shape_is_refused(tmp_path, content):
    (tmp_path / "odd.json").write_text(content)
    with pytest.raises(ForeignFile, match="the file is no JSON object"):
        load(tmp_path / "odd.json")


def test_a_missing_file_is_said_to_be_missing(tmp_path):
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "none.json")
