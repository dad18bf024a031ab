"""`make gpu` on a CPU: every part ends, and the report has what it showed."""

import sys
from pathlib import Path

import pytest
from start_python import python

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
import gpu

sys.path.pop(0)
ROOT = gpu.ROOT


def call(*arguments):
    # nobody reads its figures
    how = {"cwd": ROOT, "timeout": 600, "fresh": True, "COURSE_QUICK": "0.05"}
    return python("tools/gpu.py", *arguments, **how)


@pytest.mark.process
def test_a_rehearsal_measures_nothing_and_writes_where_it_is_told(tmp_path):
    done = call("--dry", "--out", tmp_path, "--only", "measure")
    assert done.returncode == 0, done.stdout + done.stderr
    report = (tmp_path / "report.md").read_text()
    assert "| measure | passed" in report and "Matrix product, fp32, 128" in report
    assert "no figure here is a measurement" in report and str(Path.home()) not in report
    assert not (tmp_path / "recording.json").exists()


@pytest.mark.process
@pytest.mark.parametrize(
    ("out", "part", "said"),
    [("here", "everything", "doctor, measure, tests"), ("/proc/x", "doctor", "Name another")],
)
def test_an_unknown_part_and_a_place_that_cannot_be_written_are_refused(tmp_path, out, part, said):
    done = call("--dry", "--out", tmp_path / out, "--only", part)
    assert done.returncode == 2 and said in done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize("name", ["state.json", "report.md", "recording.json"])
@pytest.mark.parametrize("content", ["mine", "[]", '{"mine": 1}'])
def test_a_folder_with_files_of_others_is_refused(tmp_path, name, content):
    (tmp_path / name).write_text(content)
    with pytest.raises(ValueError, match=f"holds {name} of another program"):
        gpu.read_state(tmp_path / "state.json", {"doctor"})


@pytest.mark.process
def test_a_part_that_fails_or_hangs_ends_alone(tmp_path):
    (tmp_path / "logs").mkdir()
    failing = gpu.Part("failing", ("-c", "import sys; sys.exit('no good')"), 60)
    hanging = gpu.Part("hanging", ("-c", "import time; time.sleep(600)"), 0.5)
    lacking = gpu.Part("lacking", ("-c", ""), 60, needs=("there_is_no_such_module",))
    ended = {part.name: gpu.run(part, tmp_path, False) for part in (failing, hanging, lacking)}
    assert ended["failing"].startswith("failed with status 1")
    assert ended["hanging"] == "stopped after 0.5 s"
    assert "lacks there_is_no_such_module" in ended["lacking"]
    assert "no good" in gpu.write_report(tmp_path, ended, dry=False).read_text()


def test_a_key_that_the_beginning_of_a_long_log_cuts_is_no_part_of_the_report(tmp_path):
    (tmp_path / "logs").mkdir()
    log = "--api-key " + "s3cr3t" * 4 + "\n" + "x" * 5990
    (tmp_path / "logs" / "tests.txt").write_text(log)
    report = gpu.write_report(tmp_path, {"tests": "failed"}, dry=False).read_text()
    assert "x" * 5000 in report and "s3cr3t" not in report


def test_every_lesson_is_a_part():
    names = [part.name for part in gpu.parts(Path("out"), dry=True)]
    lessons = sorted(path.stem for path in (ROOT / "notebooks").glob("[0-9]*.ipynb"))
    assert [f"lesson-{name}" for name in lessons] == [n for n in names if n.startswith("lesson")]


def test_a_lesson_that_has_another_number_now_is_run_again(tmp_path):
    (tmp_path / "state.json").write_text('{"doctor": "passed", "lesson-99_gone": "passed"}')
    assert gpu.read_state(tmp_path / "state.json", {"doctor"}) == {"doctor": "passed"}


def test_what_passed_is_not_run_again_and_one_failure_is_the_status_of_all(tmp_path, monkeypatch):
    names = ("doctor", "measure", "lesson-a")
    every = [gpu.Part(name, (), 1) for name in names]
    monkeypatch.setattr(gpu, "parts", lambda out, dry: every)
    ends = {"doctor": "passed in 1 s", "measure": "failed with status 1"}
    ends["lesson-a"] = "not possible here: this Python lacks x"
    ran = []
    monkeypatch.setattr(gpu, "run", lambda part, out, dry: ran.append(part.name) or ends[part.name])

    def call_here(*words):
        ran.clear()
        monkeypatch.setattr(sys, "argv", ["gpu.py", "--out", str(tmp_path), *words])
        return gpu.main(), tuple(ran)

    assert call_here() == (1, names)
    ends["measure"] = "passed in 2 s"
    assert call_here() == (0, ("measure", "lesson-a"))
    assert call_here("--only", "doctor") == (0, ("doctor",))


def test_the_report_has_the_end_of_a_log_and_none_of_a_lesson_that_passed(tmp_path):
    (tmp_path / "logs").mkdir()
    ended = {"tests": "passed", "lesson-a": "passed", "lesson-b": "failed"}
    for name in ended:
        text = f"{gpu.ROOT}/{name} {'x' * 7000} the end of {name}"
        (tmp_path / "logs" / f"{name}.txt").write_text(text)
    report = gpu.write_report(tmp_path, ended, dry=False).read_text()
    assert "the end of tests" in report and "the end of lesson-b" in report
    assert "the end of lesson-a" not in report and "| lesson-a | passed |" in report
    assert "rehearsal" not in report and len(report) < 13_000
