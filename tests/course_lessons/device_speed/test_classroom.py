"""A class's files: merged, or named and left out."""

import json
import pickle
import statistics

import pytest
from course_lessons.device_speed import classroom
from measured import measured

from course_tools.compare.results import Result


def result(median_s: float, workload: str = "CNN step", **made) -> Result:
    return Result((measured(median_s, workload=workload),), machine={"cpu": "a cpu"}, **made)


@pytest.fixture
def folder(tmp_path):
    for number in range(30):
        result(0.01 + number / 1000).save(tmp_path / f"student{number:02}.json")
    return tmp_path


def test_a_class_of_thirty_is_merged(folder):
    merged = classroom.merge(folder.glob("*.json"))
    assert len(merged.results) == 30
    assert merged.left_out == {}
    # 30 times from 10 to 39 ms for 16 samples: the median rate lies between the two in the middle
    middle = statistics.median(16 / (0.01 + number / 1000) for number in range(30))
    assert f"cpu, 1 thread (median): {middle:.3g} at 16" in merged.plot().alt


@pytest.mark.parametrize(
    ("count", "words"), [(1, "one result"), (2, "2 results and their medians")]
)
def test_the_title_says_how_many_results_there_are(folder, count, words):
    alt = classroom.merge(sorted(folder.glob("*.json"))[:count]).plot().alt
    assert alt.startswith(f"CNN step: {words}")


def test_a_copy_under_another_name_is_named(folder):
    result(0.01, date="another day").save(folder / "zoe.json")
    left_out = classroom.merge(folder.glob("*.json")).left_out
    assert left_out == {str(folder / "zoe.json"): "the same measurements as student00.json"}


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
    assert left_out["/x-other.json"] == "RNN step in fp32, while most files are CNN step in fp32"
    assert "holds 2 of them" in left_out["/x-two.json"]
    assert "x-torn.json is not a result" in left_out["/x-torn.json"]
    assert "x-pickle.json is not a result" in left_out["/x-pickle.json"]
    assert "its schema and version are" in left_out["/x-foreign.json"]
    assert "No such file" in left_out["/x-missing.json"]
    assert len(left_out) == 7


def test_the_command_writes_a_picture(folder, tmp_path, capsys):
    files = [str(path) for path in folder.glob("*.json")]
    classroom.main([*files, "--out", str(tmp_path / "all.png")])
    assert (tmp_path / "all.png").read_bytes().startswith(b"\x89PNG")
    assert "merged 30 of 30 files" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("out", "said"),
    [
        (".", "is a folder, or in a folder that does not exist"),
        ("missing/all.png", "is a folder, or in a folder that does not exist"),
        ("/proc/all.png", "No such file"),
        ("a" * 300, "File name too long"),
        ("student00.json", "holds something else"),
    ],
)
def test_a_place_where_no_picture_can_be_written_is_a_sentence(folder, out, said, capsys):
    files = [str(path) for path in folder.glob("*.json")]
    with pytest.raises(SystemExit) as refused:
        classroom.main([*files, "--out", str(folder / out)])
    assert said in f"{refused.value.code} {capsys.readouterr().err}"
