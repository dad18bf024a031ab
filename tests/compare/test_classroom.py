"""A class's files: merged, or named and left out."""

import csv
import json
import pickle
import subprocess
import sys

import pytest

from course_utils.compare import classroom
from course_utils.compare.results import Comparison, Row
from course_utils.compare.results_file import save


def result(median_s: float, workload: str = "CNN step", label: str = "cpu, 1 thread", **made: str) -> Comparison:
    row = Row(16, label, "cpu", "a cpu", 1, 0.5, (median_s, median_s), 16.0, 0.0)
    return Comparison(workload, "batch", "samples", "fp32", False, (row,), {"machine": "m"} | made)


@pytest.fixture
def folder(tmp_path):
    for number in range(30):
        save(result(0.01 + number / 1000), tmp_path / f"student{number:02}.json")
    return tmp_path


def test_a_class_of_thirty_is_merged(folder):
    merged = classroom.merge(folder.glob("*.json"))
    assert len(merged.comparisons) == 30
    assert merged.left_out == {}
    frame = merged.to_frame()
    assert len(frame) == 30
    assert frame["samples/s"].max() == pytest.approx(1600)


def test_a_copy_under_another_name_is_named(folder):
    save(result(0.01, date="another day"), folder / "zoe.json")
    left_out = classroom.merge(folder.glob("*.json")).left_out
    assert left_out == {str(folder / "zoe.json"): "the same measurements as student00.json."}


def test_files_that_do_not_fit_are_named_with_the_reason(folder):
    save(result(0.5, workload="RNN step"), folder / "x-other.json")
    (folder / "x-torn.json").write_text('{"schema":')
    (folder / "x-pickle.json").write_bytes(pickle.dumps({"a": 1}))
    (folder / "x-foreign.json").write_text(json.dumps({"speed": "high"}))
    paths = [*folder.glob("*.json"), folder / "x-missing.json", folder]
    left_out = {name.removeprefix(str(folder)): why for name, why in classroom.merge(paths).left_out.items()}
    assert left_out["/x-other.json"] == "RNN step in fp32, while most files are CNN step in fp32."
    assert "no whole JSON file" in left_out["/x-torn.json"]
    assert "no whole JSON file" in left_out["/x-pickle.json"]
    assert "its schema is not" in left_out["/x-foreign.json"]
    assert "No such file" in left_out["/x-missing.json"]
    assert len(left_out) == 6


def test_the_command_writes_a_table_and_a_picture(folder, tmp_path, capsys):
    classroom.main([*map(str, sorted(folder.glob("*.json"))), "--out", str(tmp_path / "all")])
    with open(tmp_path / "all.csv", newline="") as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == 30
    assert (tmp_path / "all.png").read_bytes().startswith(b"\x89PNG")
    assert "merged 30 of 30 files" in capsys.readouterr().out


def test_a_name_that_a_spreadsheet_would_run_is_disarmed(tmp_path):
    save(result(0.01, label='=HYPERLINK("http://evil")', machine="@SUM(A1)"), tmp_path / "evil.json")
    classroom.main([str(tmp_path / "evil.json"), "--out", str(tmp_path / "all")])
    with open(tmp_path / "all.csv", newline="") as file:
        (line,) = csv.DictReader(file)
    assert line["device"].startswith("'=")
    assert line["machine"].startswith("'@")


def test_a_file_name_cannot_steer_the_terminal(tmp_path, capsys):
    good, odd = tmp_path / "good.json", tmp_path / "bad\x1b[2J.json"
    save(result(0.01), good)
    odd.write_text("{")
    classroom.main([str(good), str(odd), "--out", str(tmp_path / "all")])
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "left out" in out


def test_without_a_good_file_the_command_fails(tmp_path):
    (tmp_path / "bad.json").write_text("{")
    run = [
        sys.executable,
        "-m",
        "course_utils.compare.classroom",
        str(tmp_path / "bad.json"),
        "--out",
        str(tmp_path / "all"),
    ]
    done = subprocess.run(run, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "none of 1 files could be used" in done.stderr
    assert not (tmp_path / "all.csv").exists()
