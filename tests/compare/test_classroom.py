"""A class's files: merged, or named and left out."""

import csv
import json
import os
import pickle
import subprocess
import sys
from dataclasses import replace

import pytest

from course_utils.compare import classroom
from course_utils.compare.measurement import Measurement
from course_utils.compare.results import Result

pytestmark = pytest.mark.process


WIDE = "\N{FULLWIDTH EQUALS SIGN}"


def result(
    median_s: float, workload="CNN step", label="cpu, 1 thread", cpu="a cpu", unit="samples", **made
) -> Result:
    what = (workload, "fp32", 16, "batch", unit, 16.0)
    return Result(
        (Measurement(*what, label, "cpu", "a cpu", 1, median_s),), machine={"cpu": cpu}, **made
    )


@pytest.fixture
def folder(tmp_path):
    for number in range(30):
        result(0.01 + number / 1000).save(tmp_path / f"student{number:02}.json")
    return tmp_path


def test_a_class_of_thirty_is_merged(folder):
    merged = classroom.merge(folder.glob("*.json"))
    assert len(merged.results) == 30
    assert merged.left_out == {}
    frame = merged.to_frame()
    assert len(frame) == 30
    assert frame["rate per s"].max() == pytest.approx(1600)


def test_a_copy_under_another_name_is_named(folder):
    result(0.01, date="another day").save(folder / "zoe.json")
    left_out = classroom.merge(folder.glob("*.json")).left_out
    assert left_out == {str(folder / "zoe.json"): "the same measurements as student00.json."}


def test_files_that_do_not_fit_are_named_with_the_reason(folder):
    result(0.5, workload="RNN step").save(folder / "x-other.json")
    both = (*result(0.5).measurements, *result(0.5, workload="RNN step").measurements)
    Result(both).save(folder / "x-two.json")
    (folder / "x-torn.json").write_text('{"schema":')
    (folder / "x-pickle.json").write_bytes(pickle.dumps({"a": 1}))
    (folder / "x-foreign.json").write_text(json.dumps({"speed": "high"}))
    paths = [*folder.glob("*.json"), folder / "x-missing.json", folder]
    left_out = {
        name.removeprefix(str(folder)): why for name, why in classroom.merge(paths).left_out.items()
    }
    assert left_out["/x-other.json"] == "RNN step in fp32, while most files are CNN step in fp32."
    assert "2 kinds of work" in left_out["/x-two.json"]
    assert "not a complete JSON file" in left_out["/x-torn.json"]
    assert "not a complete JSON file" in left_out["/x-pickle.json"]
    assert "its schema and version are not" in left_out["/x-foreign.json"]
    assert "No such file" in left_out["/x-missing.json"]
    assert len(left_out) == 7


def test_the_command_writes_a_table_and_a_picture(folder, tmp_path, capsys):
    classroom.main(
        [*map(str, sorted(folder.glob("*.json"))), "--out", str(tmp_path / "new" / "all")]
    )
    with open(tmp_path / "new" / "all.csv", newline="") as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == 30
    assert (tmp_path / "new" / "all.png").read_bytes().startswith(b"\x89PNG")
    assert "merged 30 of 30 files" in capsys.readouterr().out


def test_a_name_that_a_spreadsheet_would_run_is_disarmed(tmp_path):
    result(0.01, label='=HYPERLINK("http://evil")', cpu=WIDE + "SUM(A1)", unit=" @1+1").save(
        tmp_path / "evil.json"
    )
    classroom.main([str(tmp_path / "evil.json"), "--out", str(tmp_path / "all")])
    with open(tmp_path / "all.csv", newline="") as file:
        (line,) = csv.DictReader(file)
    assert line["device"].startswith("'=")
    assert line["unit"].startswith("' @")
    assert line["machine"].startswith("'" + WIDE)
    assert not any(
        cell.lstrip().startswith(("=", "+", "-", "@")) for cell in (*line, *line.values())
    )


def test_a_file_name_cannot_steer_the_terminal(tmp_path, capsys):
    good, odd = tmp_path / "good.json", tmp_path / "bad\x1b[2J.json"
    result(0.01).save(good)
    odd.write_text("{")
    classroom.main([str(good), str(odd), "--out", str(tmp_path / "all")])
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "left out" in out


def test_without_a_good_file_the_command_fails_also_where_the_terminal_lacks_a_letter(tmp_path):
    (tmp_path / "Łukasz.json").write_text("{")
    run = [
        sys.executable,
        "-m",
        "course_utils.compare.classroom",
        str(tmp_path / "Łukasz.json"),
        "--out",
        str(tmp_path / "all"),
    ]
    windows = {**os.environ, "PYTHONIOENCODING": "cp1252"}  # which has no Ł
    done = subprocess.run(run, capture_output=True, text=True, check=False, env=windows)
    assert done.returncode == 1
    assert r"\u0141ukasz.json" in done.stdout
    assert "none of 1 files could be used" in done.stderr
    assert not (tmp_path / "all.csv").exists()


def test_a_pattern_that_the_shell_left_alone_is_read_as_the_files_that_it_names(
    folder, tmp_path, capsys
):
    classroom.main([str(folder / "*.json"), "--out", str(tmp_path / "merged")])
    assert "merged 30 of 30 files" in capsys.readouterr().out
    result(0.5).save(folder / "odd[1].json")
    classroom.main([str(folder / "odd[1].json"), "--out", str(tmp_path / "merged")])
    assert "merged 1 of 1 files" in capsys.readouterr().out


def test_a_copy_in_a_folder_of_its_own_is_named_with_the_folder(tmp_path):
    for student in ("ada", "bob"):
        (tmp_path / student).mkdir()
        result(0.01).save(tmp_path / student / "cnn.json")
    (why,) = classroom.merge(tmp_path.glob("*/cnn.json")).left_out.values()
    assert why == f"the same measurements as {os.path.join('..', 'ada', 'cnn.json')}."


@pytest.mark.parametrize(
    ("field", "value"), [("size", 10**17), ("median_s", 1e-300), ("median_s", 1e17)]
)
def test_a_figure_that_would_hide_the_class_is_named_and_left_out(folder, field, value):
    (one,) = result(0.01).measurements
    Result((replace(one, **{field: value}),)).save(folder / "joke.json")
    merged = classroom.merge(folder.glob("*.json"))
    assert len(merged.results) == 30
    assert (
        "more than 10,000 times off the class's median"
        in merged.left_out[str(folder / "joke.json")]
    )


def test_of_two_files_that_differ_much_neither_is_left_out(tmp_path):
    for name, median_s in (("ada", 0.01), ("bob", 1000.0)):
        result(median_s).save(tmp_path / f"{name}.json")
    assert classroom.merge(tmp_path.glob("*.json")).left_out == {}


def test_the_table_begins_with_the_mark_without_which_excel_garbles_names(tmp_path):
    result(0.01).save(tmp_path / "Łukasz.json")
    classroom.main([str(tmp_path / "Łukasz.json"), "--out", str(tmp_path / "all")])
    assert (tmp_path / "all.csv").read_bytes().startswith(b"\xef\xbb\xbf")
    assert "Łukasz.json" in (tmp_path / "all.csv").read_text(encoding="utf-8-sig")
