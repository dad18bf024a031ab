import json
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
import torch_xla_stand_ins as stand_ins
from course_lessons.tpu import (
    calls_until_xla_pays,
    draw_cache,
    draw_graph,
    draw_payoff,
    draw_shards,
    pictures,
)

pytestmark = pytest.mark.process


LESSON = Path(__file__).resolve().parents[2] / "notebooks" / "04_tpu.ipynb"


def run_lesson(site: Path, folder: Path) -> list:
    """Execute the lesson in a kernel that sees `site` and return its code cells."""
    kernel = folder / "share" / "kernels" / "stand-in"
    kernel.mkdir(parents=True)
    argv = [sys.executable, "-S", "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    spec = {
        "argv": argv,
        "display_name": "stand-in",
        "language": "python",
        "env": stand_ins.environment(site),
    }
    (kernel / "kernel.json").write_text(json.dumps(spec))
    command = [
        sys.executable,
        "-m",
        "jupyter",
        "nbconvert",
        "--to",
        "notebook",
        "--execute",
        str(LESSON),
    ]
    command += ["--ExecutePreprocessor.kernel_name=stand-in", f"--output-dir={folder}"]
    environment = {**stand_ins.os.environ, "JUPYTER_PATH": str(folder / "share")}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    notebook = nbformat.read(folder / LESSON.name, as_version=nbformat.NO_CONVERT)
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def test_without_a_torch_xla_that_fits_every_xla_cell_is_one_sentence_and_the_rest_runs(tmp_path):
    """With another version than torch's, which is what hosts have; an absent one leads to another
    sentence only.
    """
    cells = run_lesson(stand_ins.with_another_torch_xla(tmp_path / "site"), tmp_path)
    problem = next(
        cell for cell in cells if "xla_problem()" in cell.source and "import" not in cell.source
    )
    sentence = eval(problem.outputs[0]["data"]["text/plain"])
    assert "undefined symbol" in sentence and "pip install" in sentence
    marked = [cell for cell in cells if cell.source.startswith("%%needs XLA")]
    assert len(marked) > 20
    for cell in marked:
        assert (
            "".join(output["text"] for output in cell.outputs)
            == f"This cell needs XLA, but {sentence}\n"
        ), cell.source
    shown = [cell for cell in cells if cell not in marked and cell.outputs]
    assert len(shown) >= 8
    assert all(output.output_type != "error" for cell in cells for output in cell.outputs)


@pytest.mark.parametrize(
    ("cpu_s", "xla_s", "compile_s", "calls"),
    [
        (2.0, 1.0, 10.0, 10),
        (2.0, 1.0, 0.0, 1),
        (1.0, 1.0, 10.0, None),
        (1.0, 2.0, 0.0, None),
        (0.3, 0.1, 1.0, 5),
    ],
)
def test_compiling_pays_where_the_totals_cross(cpu_s, xla_s, compile_s, calls):
    assert calls_until_xla_pays(cpu_s, xla_s, compile_s) == calls
    if calls:
        totals = {n: compile_s + n * xla_s - n * cpu_s for n in (calls - 1, calls)}
        assert totals[calls] <= 1e-9 and (calls == 1 or totals[calls - 1] > 0)


def test_the_pictures_say_what_they_show():
    assert "each line: 1, 2, 1, 2." in draw_graph([1, 2, 1, 2], cut_every=2).alt
    assert "3 calls with 2 shapes: 2 programs." in draw_cache([5, 7, 5], [1, 1, 0]).alt
    halves = [[0, 2, 0, 4], [2, 4, 0, 4]]
    assert (
        "on 2 devices. mesh 2 x 1: 2 x 4 each." in draw_shards({"mesh 2 x 1": halves}, (4, 4)).alt
    )
    assert "from call 10 on" in draw_payoff(2.0, 1.0, 10.0, "rehearsal").alt
    assert (
        "do not meet" in draw_payoff(1.0, 2.0, 10.0, "TPU").alt
        and "TPU" in draw_payoff(1.0, 2.0, 10.0, "TPU").alt
    )


def test_calls_are_counted_in_whole_numbers(monkeypatch):
    monkeypatch.setattr(pictures, "picture", lambda axes, alt: axes)
    axes = draw_payoff(0.2, 0.08, 0.05, "rehearsal")
    low, high = axes.get_xlim()
    ticks = [tick for tick in axes.get_xticks() if low <= tick <= high]
    assert len(ticks) > 2 and all(tick == int(tick) for tick in ticks) and high >= 12
