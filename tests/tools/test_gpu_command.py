"""`make gpu` without a GPU: its rehearsal, what it writes, and the check of a recording that
somebody sent.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import nbformat
import pytest
import torch

from course_utils.compare.measurement import Measurement
from course_utils.compare.results import Result
from tools.gpu.check import main as check
from tools.gpu.run import GOAL_MISSED, SECTIONS

pytestmark = pytest.mark.process


ROOT = Path(__file__).resolve().parents[2]
RUN = [sys.executable, str(ROOT / "tools" / "gpu" / "run.py"), "--dry"]
SOME = ["doctor", "measure-copies", "tests", "launcher", "timelines"]
SECTIONS_AT_ONCE = """
import sys
from tools.gpu import measure
measure.SECONDS = 0.05
sections = measure.SECTIONS[1:]
print([measure.main([each.__name__, "--out", sys.argv[1], "--dry"]) for each in sections])
"""


def run(*words, code=0):
    done = subprocess.run([*words], cwd=ROOT, capture_output=True, text=True, timeout=400)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def rehearsed(tmp_path_factory):
    """What `make gpu DRY=1` leaves; all sections but one are measured in one process here, and in
    less time.

    Of the ten models it counts the memory and the work alone, which shows that their inputs fit.
    """
    out = tmp_path_factory.mktemp("gpu")
    ended = json.loads(run(sys.executable, "-c", SECTIONS_AT_ONCE, out).splitlines()[-1])
    assert {*ended} <= {0, GOAL_MISSED}
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
    assert "| Matrix product | fp32 | side " in text and re.search(r" [MGT]FLOP/s \|", text)


def test_a_second_call_goes_on_where_the_first_stopped(rehearsed):
    before = (rehearsed / "measurements.jsonl").read_text()
    assert "..." not in run(*RUN, "--out", rehearsed, "--only", "doctor", "measure-copies")
    assert (rehearsed / "measurements.jsonl").read_text() == before


def test_a_part_that_fails_or_hangs_ends_alone(tmp_path):
    from tools.gpu.run import Part, run_part

    bad = run_part(Part("bad", ("-c", "raise SystemExit('it broke')"), 30), tmp_path, 30, True)
    hangs = run_part(
        Part("hangs", ("-c", "import time; print('on', flush=True); time.sleep(99)"), 5),
        tmp_path,
        5,
        True,
    )
    assert (bad.status, hangs.status) == ("failed", "too long")
    assert "it broke" in bad.last_words and "on" in hangs.last_words


def test_a_part_that_misses_a_goal_came_to_its_end_and_is_not_run_again(tmp_path, monkeypatch):
    from tools.gpu import run

    missed = run.Part(
        "missed", ("-c", f"open('ran', 'a').write('x'); raise SystemExit({run.GOAL_MISSED})"), 30
    )
    monkeypatch.setattr(run, "parts", lambda out, dry: [missed])
    monkeypatch.setattr(run, "ROOT", tmp_path)
    for _ in range(2):
        (ended,) = run.run(tmp_path, dry=True, minutes=1, only=[], again=False)
        assert ended.status == "goal missed" and (tmp_path / "ran").read_text() == "x"


@pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without a GPU")
def test_without_a_gpu_the_report_says_so_in_place_of_the_doctor_alone(tmp_path):
    words = ["--out", tmp_path, "--only", "doctor", "measure-zeros"]
    command = [sys.executable, ROOT / "tools" / "gpu" / "run.py", *words]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=200)
    text = (tmp_path / "report.md").read_text()
    assert done.returncode == 1 and text.startswith("# No cuda device")
    assert "0 of 2 parts passed" in text and "measure-zeros (failed)" in text
    assert not (tmp_path / "recording.json").exists()


def test_the_command_knows_every_section():
    from tools.gpu import measure, run

    assert list(run.SECTIONS) == [section.__name__ for section in measure.SECTIONS]


def test_every_section_measures_something(rehearsed):
    files = [rehearsed / name for name in ("measurements.jsonl", "findings.jsonl")]
    measured = {
        json.loads(line)["section"] for file in files for line in file.read_text().splitlines()
    }
    assert measured == {*SECTIONS} - {"timer", "memory", "estimate"}, (
        "what these find is said of a GPU alone"
    )


def test_a_figure_too_large_for_the_card_is_left_out_alone(capsys):
    from tools.gpu.measure import if_it_fits

    def too_large(*_):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 88 GiB.")

    assert list(if_it_fits(too_large, "device", "a large one", 256)) == []
    assert "('a large one', 256)" in capsys.readouterr().out
    assert list(if_it_fits(lambda *_: 3, "device")) == [3]


def test_user_host_and_folders_do_not_show(monkeypatch):
    from tools.gpu import run

    monkeypatch.setenv("USER", "ada")
    monkeypatch.setattr(run.socket, "gethostname", lambda: "node-17")
    text = run.without_names(f"{ROOT}/x.py of ada on node-17 at 10.0.0.7 in /scratch/ada/adagrad")
    assert text == "COURSE/x.py of USER on HOST at ADDRESS in /scratch/USER/adagrad"


def test_a_part_whose_packages_are_absent_names_them_and_does_not_start(tmp_path):
    from tools.gpu.run import Part, run_part

    left_out = run_part(
        Part("x", ("-c", "1 / 0"), 5, needs=("json", "no_such_package")), tmp_path, 5, True
    )
    assert (
        left_out.status == "not possible here"
        and left_out.last_words == "This Python lacks no_such_package."
    )


@pytest.fixture
def small_lesson(tmp_path):
    sources = [
        "import os\nx = 3",
        "x + 1",
        "%matplotlib inline",
        "1 / (x - 3)",
        "os.getcwd()",
        "print('the end')",
        "len(_)",
    ]
    cells = [nbformat.v4.new_code_cell(source) for source in sources]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), tmp_path / "small.ipynb")
    return tmp_path / "small.ipynb"


def test_without_jupyter_the_plain_cells_run_and_an_error_ends_its_own_cell_alone(
    small_lesson, capsys
):
    from tools.gpu.lesson import execute_cells

    assert execute_cells(small_lesson, small_lesson.with_suffix(".txt")) == 1
    text = small_lesson.with_suffix(".txt").read_text()
    assert (
        "[1]\n4\n" in text
        and "[2] left out" in text
        and f"the end\n\n[6]\n{len(os.getcwd())}\n" in text
    )
    assert "cell 3: ZeroDivisionError" in capsys.readouterr().out


def test_with_jupyter_an_error_ends_its_own_cell_alone_and_the_outputs_name_no_folder(
    small_lesson, capsys
):
    from tools.gpu.lesson import execute_notebook

    for number, source in (("first", "1 / (x - 3)"), ("second", "1 / x")):
        lesson, kept = (
            nbformat.read(small_lesson, as_version=4),
            small_lesson.with_name(f"{number}.ipynb"),
        )
        lesson.cells[3].source = source
        nbformat.write(lesson, small_lesson)
        assert execute_notebook(small_lesson, kept) == (number == "first")
        outputs = [cell.outputs for cell in nbformat.read(kept, as_version=4).cells]
        assert outputs[1][0].data["text/plain"] == "4" and outputs[5][0].text == "the end\n"
    assert capsys.readouterr().out.startswith("cell 3: ZeroDivisionError: division by zero")
    assert str(Path.home()) + "/" not in kept.read_text()


def test_a_lesson_that_is_ended_early_keeps_the_outputs_of_its_cells(small_lesson):
    from nbclient.exceptions import DeadKernelError

    from tools.gpu.lesson import execute_notebook

    lesson, kept = nbformat.read(small_lesson, as_version=4), small_lesson.with_name("kept.ipynb")
    lesson.cells[3].source = "os._exit(1)"
    nbformat.write(lesson, small_lesson)
    with pytest.raises(DeadKernelError):
        execute_notebook(small_lesson, kept)
    assert nbformat.read(kept, as_version=4).cells[1].outputs[0].data["text/plain"] == "4"


def test_packages_that_pythonpath_names_reach_every_part_and_the_course_comes_first(
    tmp_path, monkeypatch
):
    from tools.gpu.run import Part, run_part

    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}/carried")
    part = Part("path", ("-c", "import sys; print(sys.path[1:3]); raise SystemExit(1)"), 30)
    assert run_part(part, tmp_path, 30, True).last_words.strip() == str(
        [str(ROOT), f"{tmp_path}/carried"]
    )


def test_a_python_without_torch_is_refused_and_the_way_to_name_another_is_said(tmp_path):
    bare = subprocess.run(
        [sys.executable, "-S", *RUN[1:], "--out", tmp_path],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert (
        bare.returncode == 2 and "has no torch" in bare.stderr and "make gpu PYTHON=" in bare.stderr
    )


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_call_that_is_ended_ends_its_part_too_and_says_how_to_go_on(tmp_path, stop):
    slow = f"""
import sys
from pathlib import Path
from tools.gpu import run
code = "import os, time; print(os.getpid()); time.sleep(99)"
run.parts = lambda out, dry: [run.Part("slow", ("-c", code), 99)]
sys.argv = ["run.py", "--dry", "--out", {str(tmp_path)!r}]
run.main()
"""
    log = tmp_path / "logs" / "slow.txt"
    with subprocess.Popen(
        [sys.executable, "-c", slow], cwd=ROOT, stderr=subprocess.PIPE, text=True
    ) as process:
        while not (log.exists() and log.read_text().strip()):
            assert process.poll() is None
            time.sleep(0.05)
        time.sleep(2)  # the part can print before the command that has started it waits for it
        process.send_signal(stop)
        assert "The same command again goes on" in process.communicate(timeout=60)[1]
    with pytest.raises(ProcessLookupError):
        os.kill(int(log.read_text()), 0)


@pytest.mark.skipif(shutil.which("make") is None, reason="needs make")
@pytest.mark.parametrize(
    ("words", "starts"), [([], "VENV/bin/python "), (["PYTHON=other"], "other ")]
)
def test_a_python_that_is_named_is_used_although_there_is_an_environment(tmp_path, words, starts):
    (tmp_path / "ready-learn").touch()
    # Under `make test`, make would hand its own settings on.
    ours = ("PYTHON", "MAKEFLAGS", "MAKEOVERRIDES", "MAKELEVEL", "MFLAGS")
    environment = {name: value for name, value in os.environ.items() if name not in ours}
    command = ["make", "--dry-run", "gpu", f"VENV={tmp_path}", *words]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.stdout.replace(str(tmp_path), "VENV").startswith(f"{starts}tools/gpu/run.py")


def test_an_unknown_part_is_refused_with_those_there_are(tmp_path):
    done = subprocess.run(
        [*RUN, "--out", tmp_path, "--only", "nonsense"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 2 and "measure-copies" in done.stderr


@pytest.mark.parametrize(
    ("device", "chip"),
    [
        ("Tesla T4", "T4"),
        ("NVIDIA A100-SXM4-40GB", "A100 40GB"),
        ("NVIDIA H100 80GB HBM3", "H100 SXM"),
        ("NVIDIA L40S", "L40S"),
        ("NVIDIA A10G", "A10G"),
        ("NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition", "RTX PRO 6000 Max-Q"),
        *(
            (other, None)
            for other in ("NVIDIA L40", "NVIDIA GH200 480GB", "NVIDIA A30", "NVIDIA H100 NVL")
        ),
        *(
            (other, None)
            for other in ("NVIDIA GeForce RTX 4090 Laptop GPU", "NVIDIA H100 80GB HBM3 MIG 1g.10gb")
        ),
    ],
)
def test_a_card_is_held_against_its_own_data_sheet_or_none(device, chip):
    from tools.gpu.check import chip_of

    assert getattr(chip_of(device), "name", None) == chip


def recording(tmp_path, **changed):
    """Write a recording as the course writes it, with something in its one measurement changed
    afterwards.
    """
    work = ("Matrix product", "bf16", 8192, "side", "FLOP", 2.0 * 8192**3)
    path = tmp_path / "sent.json"
    Result(
        (Measurement(*work, "cuda:0", "cuda", "NVIDIA H200", 8, 1.5e-3),), date="2026-11-21"
    ).save(path)
    whole = json.loads(path.read_text())
    whole["measurements"][0] |= changed
    path.write_text(json.dumps(whole))
    return path


def test_a_plausible_recording_passes(tmp_path):
    assert "Nothing in it is implausible" in run(
        sys.executable, ROOT / "tools/gpu/check.py", recording(tmp_path)
    )


def refused(path, capsys):
    """Return what the same command prints of a recording that it refuses."""
    assert check([str(path)]) == 1
    return capsys.readouterr().out


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"median_s": 1e-5}, "above"),
        ({"device": "My own chip"}, "is not a chip that the course knows"),
        ({"median_s": -1.0}, "positive"),
        ({"kind": "<b>cuda</b>"}, "not one of"),
    ],
)
def test_what_no_such_card_can_have_done_is_named(tmp_path, capsys, changed, said):
    assert said in refused(recording(tmp_path, **changed), capsys)


def test_a_recording_without_a_measurement_is_refused(tmp_path, capsys):
    Result((), date="2026-11-21").save(tmp_path / "sent.json")
    assert "no measurement" in refused(tmp_path / "sent.json", capsys)


@pytest.mark.parametrize(("precision", "bytes_moved"), [("fp32", 12), ("bf16", 6)])
def test_an_addition_cannot_move_more_than_the_memory_does(precision, bytes_moved):
    from tools.gpu.check import implausible

    seconds = 1e8 * bytes_moved / 4.8e12  # an H200's memory moves 4,800 GB a second
    work = (
        "Elementwise",
        precision,
        10**8,
        "elements",
        "elements",
        1e8,
        "cuda:0",
        "cuda",
        "NVIDIA H200",
        8,
    )
    assert not implausible(Result((Measurement(*work, seconds),)))
    assert "above" in implausible(Result((Measurement(*work, seconds / 1.2),)))[0]


@pytest.mark.parametrize(
    "text",
    ['{"schema": ', "[" * 10**5, "[]", "null", " " * 6_000_000, '{"schema": NaN}', "\0", ""],
    ids=["torn", "nested", "a list", "null", "huge", "NaN", "a zero", "empty"],
)
def test_what_is_no_recording_is_a_sentence(tmp_path, capsys, text):
    path = tmp_path / "sent.json"
    path.write_text(text)
    said = refused(path, capsys)
    assert said.startswith("sent.json") and len(said.splitlines()) == 1


@pytest.mark.parametrize(
    "name", ["<script>alert(1)</script>", "\x1b[2J", "A" * 400, "NVIDIA H100\n# All is well"]
)
def test_markup_and_control_characters_in_a_name_are_shown_as_text(tmp_path, capsys, name):
    said = refused(recording(tmp_path, device=name), capsys)
    assert said.isascii() and said.count("\n") == 1 and "\x1b" not in said


def test_the_time_in_which_something_ran_counts_overlaps_once():
    from course_utils.timeline.record import Timeline
    from tools.gpu.timelines import summary

    # start and duration, microseconds
    times = {"kernel": [(0, 10), (5, 10)], "gpu_memcpy": [(6, 2), (12, 8), (30, 1)]}
    events = [
        {"ph": "X", "cat": category, "name": "", "pid": 0, "tid": 7, "ts": start, "dur": duration}
        for category, spans in times.items()
        for start, duration in spans
    ]
    found = summary(Timeline({"traceEvents": events}))
    expected = {
        "total_s": 31e-6,
        "kernels_s": 15e-6,
        "copies_s": 11e-6,
        "device_busy_s": 21e-6,
        "operations": 5,
    }
    assert found == pytest.approx(expected)
