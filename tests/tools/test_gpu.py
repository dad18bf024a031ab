"""`make gpu` on a CPU: every part ends, and the report has what it showed."""

import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from start_python import python

from course_tools.compare import Result, comparison
from course_tools.doctor.command import LIMIT_S
from course_utils import devices, timing

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
    killed = gpu.Part("killed", ("-c", "import os; os.kill(os.getpid(), 9)"), 60)
    parts = failing, hanging, lacking, killed
    ended = {part.name: gpu.run(part, tmp_path, False) for part in parts}
    assert ended["killed"].startswith("failed with status -9")
    assert ended["failing"].startswith("failed with status 1")
    assert ended["hanging"] == "stopped after 0.5 s"
    assert "lacks there_is_no_such_module" in ended["lacking"]
    assert "no good" in gpu.write_report(tmp_path, ended, dry=False).read_text()


@pytest.mark.parametrize("times", [4, 1200])
def test_a_key_that_the_beginning_of_a_long_log_cuts_is_no_part_of_the_report(tmp_path, times):
    (tmp_path / "logs").mkdir()
    log = "--api-key " + "s3cr3t" * times + "\n" + "x" * 5990
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


@pytest.mark.parametrize("dry", [False, True])
def test_each_part_has_a_time_limit_and_the_device_that_is_asked_for(tmp_path, monkeypatch, dry):
    doctor, measure, *others = gpu.parts(tmp_path, dry)
    asked = dict(zip(doctor.command[2::2], doctor.command[3::2], strict=True))
    assert asked["--require"] == ("cpu" if dry else "cuda")
    assert LIMIT_S < float(asked["--limit"]) < doctor.limit_s  # it ends by itself, and says why
    assert ("--dry" in measure.command) == dry and str(tmp_path) in measure.command
    limits = [part.limit_s for part in (doctor, measure, *others)]
    assert min(limits) > 60 and sum(limits) < 3600  # a machine is often rented by the hour
    for variable in ("COURSE_DEVICE", "COURSE_DRY"):
        monkeypatch.delenv(variable, raising=False)
    (tmp_path / "logs").mkdir()
    given = {}

    def run(command, **how):
        given.update(how)
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(gpu.subprocess, "run", run)
    assert gpu.run(measure, tmp_path, dry) == "passed in 0 s"
    assert given["timeout"] == measure.limit_s and given["cwd"] == ROOT
    variables = [given["env"].get(name) for name in ("COURSE_DEVICE", "COURSE_DRY")]
    assert variables == (["cpu", "1"] if dry else [None, None])
    folders = given["env"]["PYTHONPATH"].split(os.pathsep)
    assert folders[:2] == [str(ROOT), str(ROOT / "notebooks")]


@pytest.mark.parametrize(
    ("capability", "precisions"),
    [((9, 0), ["fp32", "tf32", "bf16"]), ((8, 0), ["fp32", "tf32", "bf16"]), ((7, 5), ["fp32"])],
)
def test_a_card_is_measured_in_what_it_has_and_each_figure_is_kept(
    tmp_path, monkeypatch, capability, precisions
):
    card = SimpleNamespace(kind="cuda", name="NVIDIA T4", detail="its detail")
    cpu, one = devices.pick_device("cpu"), comparison.measure
    asked, kept = [], []

    def measure(device, work, size, precision, max_s):
        assert device is card and max_s == 0.5
        asked.append((precision, size))
        return one(cpu, work, 8, "fp32", max_s=1e-9)

    save = Result.save
    monkeypatch.setattr(Result, "save", lambda self, path: kept.append(path) or save(self, path))
    monkeypatch.setattr(devices, "as_device", lambda name: card if name == "cuda" else cpu)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: capability)
    monkeypatch.setattr(comparison, "measure", measure)
    monkeypatch.setattr(gpu, "time_copies", lambda device, dry: None)
    monkeypatch.setattr(gpu, "compare_estimates", lambda device, dry: None)
    gpu.measure(tmp_path, False)
    assert list(dict.fromkeys(precision for precision, _ in asked)) == precisions
    assert {size for _, size in asked} == {2**power for power in (4, 6, 8, 9, 10, 11, 12, 13)}
    assert len(kept) == len(asked) == 10 * len(precisions)
    found = Result.load(tmp_path / "recording.json")
    assert len(found.measurements) == len(asked) and found.detail == "its detail"


def test_copies_are_timed_small_ones_and_large_ones(capsys):
    gpu.time_copies(devices.pick_device("cpu"), dry=True)
    found = re.findall(r"copy of ([\d,]+) bytes: (\S+) s, (\S+) GB/s", capsys.readouterr().out)
    sizes = [int(size.replace(",", "")) for size, _, _ in found]
    assert sizes == [4096, 65_536]
    for size, (_, took_s, rate) in zip(sizes, found, strict=True):
        assert float(rate) * float(took_s) * 1e9 == pytest.approx(size, rel=0.02)


def test_the_estimate_is_held_against_what_is_measured(monkeypatch, capsys):
    """Half as long as measured is a ratio of 0.5, and a card that is not known has none."""
    batches = []

    def count(model, image, batch, precision):
        assert len(image) == 1
        return batches.append((batch, precision))

    monkeypatch.setattr("course_tools.estimate.count_work", count)
    time = SimpleNamespace(total_s=0.1)
    monkeypatch.setattr("course_tools.estimate.step_time", lambda work, chip: time)
    step = "course_lessons.device_speed.image_step.training_step"
    monkeypatch.setattr(step, lambda model, images, *_: len(images))
    measured = SimpleNamespace(median_s=0.2)
    monkeypatch.setattr(timing, "time_call", lambda step, **how: batches.append(step) or measured)
    gpu.compare_estimates(SimpleNamespace(name="NVIDIA H200"), dry=False)
    assert batches[1::2] == [256, 256, 64, 64]
    assert batches[::2] == [(each, how) for each in (256, 64) for how in ("fp32", "fp16")]
    assert capsys.readouterr().out.count("estimated / measured 0.50\n") == 4
    gpu.compare_estimates(SimpleNamespace(name="a card of 2040"), dry=False)
    assert capsys.readouterr().out.startswith("no estimate to compare: unknown chip")
