"""`make gpu` without a GPU: its rehearsal, what it writes, and the check of a recording that somebody sent."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from course_utils.compare.measurement import Measurement
from course_utils.compare.results import Result

ROOT = Path(__file__).resolve().parents[2]
RUN = [sys.executable, str(ROOT / "tools" / "gpu" / "run.py"), "--dry"]
CHECK = [sys.executable, str(ROOT / "tools" / "gpu" / "check.py")]
SOME = ["doctor", "measure-copies", "measure-products", "measure-elementwise", "measure-zeros", "tests", "timelines"]


def run(*words, code=0):
    done = subprocess.run([*words], cwd=ROOT, capture_output=True, text=True, timeout=400)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def rehearsed(tmp_path_factory):
    out = tmp_path_factory.mktemp("gpu")
    lessons = [f"lesson-{path.stem}" for path in sorted((ROOT / "notebooks").glob("[0-9]*.ipynb"))]
    said = run(*RUN, "--out", out, "--only", *SOME, *lessons)
    assert said.count("passed") == len(SOME) + len(lessons)
    return out


def test_the_rehearsal_writes_a_recording_that_the_course_reads(rehearsed):
    result = Result.load(rehearsed / "recording.json")
    assert {"Matrix product", "Elementwise"} <= {one.workload for one in result.measurements}
    assert "rehearsal" in result.detail and result.date and result.versions["torch"]


def test_the_report_names_each_part_and_no_folder_of_this_machine(rehearsed):
    text = (rehearsed / "report.md").read_text()
    assert all(f"| {part} | passed |" in text for part in SOME)
    assert str(ROOT) not in text and str(Path.home()) + "/" not in text


def test_a_second_call_goes_on_where_the_first_stopped(rehearsed):
    before = (rehearsed / "measurements.jsonl").read_text()
    assert "..." not in run(*RUN, "--out", rehearsed, "--only", "doctor", "measure-copies")
    assert (rehearsed / "measurements.jsonl").read_text() == before


def test_a_part_that_fails_or_hangs_ends_alone(tmp_path):
    from tools.gpu.run import Part, run_part

    bad = run_part(Part("bad", ("-c", "raise SystemExit('it broke')"), 30), tmp_path, 30, True)
    hangs = run_part(
        Part("hangs", ("-c", "import time; print('on', flush=True); time.sleep(99)"), 5), tmp_path, 5, True
    )
    assert (bad.status, hangs.status) == ("failed", "too long")
    assert "it broke" in bad.last_words and "on" in hangs.last_words


def test_a_part_whose_packages_are_absent_names_them_and_does_not_start(tmp_path):
    from tools.gpu.run import Part, run_part

    left_out = run_part(Part("x", ("-c", "1 / 0"), 5, needs=("json", "no_such_package")), tmp_path, 5, True)
    assert left_out.status == "not possible here" and left_out.last_words == "This Python lacks no_such_package."


def test_the_estimate_is_held_against_ten_models_whose_inputs_fit():
    from course_utils.estimate import count_work
    from tools.gpu.measure import TEN_MODELS

    works = [count_work(build(), torch.empty(1, *shape), precision="fp16") for build, shape, _ in TEN_MODELS.values()]
    assert len(works) == 10 and all(work.training and work.flops > 0 for work in works)


def test_an_unknown_part_is_refused_with_those_there_are(tmp_path):
    done = subprocess.run([*RUN, "--out", tmp_path, "--only", "nonsense"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 2 and "measure-copies" in done.stderr


def recording(tmp_path, **changed):
    """Write a recording as the course writes it, with something in its one measurement changed afterwards."""
    work = ("Matrix product", "bf16", 8192, "side", "FLOP", 2.0 * 8192**3)
    path = tmp_path / "sent.json"
    Result((Measurement(*work, "cuda:0", "cuda", "NVIDIA H200", 8, 1.5e-3),), date="2026-11-21").save(path)
    whole = json.loads(path.read_text())
    whole["measurements"][0] |= changed
    path.write_text(json.dumps(whole))
    return path


def test_a_plausible_recording_passes(tmp_path):
    assert "Nothing in it is implausible" in run(*CHECK, recording(tmp_path))


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"median_s": 1e-5}, "above"),
        ({"device": "My own chip"}, "is not a chip that the course knows"),
        ({"median_s": -1.0}, "positive"),
        ({"kind": "<b>cuda</b>"}, "not one of"),
    ],
)
def test_what_no_such_card_can_have_done_is_named(tmp_path, changed, said):
    assert said in run(*CHECK, recording(tmp_path, **changed), code=1)


def test_a_torn_file_is_a_sentence(tmp_path):
    path = tmp_path / "torn.json"
    path.write_text('{"schema": ')
    assert "torn.json" in run(*CHECK, path, code=1)


def test_the_time_in_which_something_ran_counts_overlaps_once():
    from tools.gpu.timelines import covered

    spans = [{"ts": 0, "dur": 10}, {"ts": 5, "dur": 10}, {"ts": 30, "dur": 1}, {"ts": 6, "dur": 2}]
    assert covered(spans) == 16
