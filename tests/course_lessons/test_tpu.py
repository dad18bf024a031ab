import ast
import json
import subprocess
import sys
from pathlib import Path

import nbformat
import numpy as np
import pytest
import torch_xla_stand_ins as stand_ins
from course_lessons.tpu.pictures import draw_cache, draw_steps, draw_systolic_array
from course_lessons.tpu.xla_activity import StepTime

LESSON = Path(__file__).resolve().parents[2] / "notebooks" / "05_tpu.ipynb"


def run_lesson(site: Path, folder: Path) -> list:
    """Execute the lesson in a kernel that sees `site` and return its code cells."""
    kernel = folder / "share" / "kernels" / "stand-in"
    kernel.mkdir(parents=True)
    argv = [sys.executable, "-S", "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    spec = {"argv": argv, "display_name": "stand-in", "language": "python"}
    spec["env"] = stand_ins.environment(site)
    (kernel / "kernel.json").write_text(json.dumps(spec))
    command = [sys.executable, "-m", "jupyter", "nbconvert", "--to", "notebook", "--execute"]
    command.append(str(LESSON))
    command += ["--ExecutePreprocessor.kernel_name=stand-in", f"--output-dir={folder}"]
    environment = {**stand_ins.os.environ, "JUPYTER_PATH": str(folder / "share")}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    notebook = nbformat.read(folder / LESSON.name, as_version=nbformat.NO_CONVERT)
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


@pytest.mark.slow
def test_without_a_torch_xla_that_fits_every_xla_cell_is_one_sentence_and_the_rest_runs(tmp_path):
    """With another version than torch's, which is what hosts have; an absent one leads to another
    sentence only.
    """
    cells = run_lesson(stand_ins.with_another_torch_xla(tmp_path / "site"), tmp_path)
    imports = next(cell for cell in cells if cell.id == "05-imports")
    sentence = ast.literal_eval(imports.outputs[-1]["data"]["text/plain"])
    assert "undefined symbol" in sentence and stand_ins.remedy() in sentence
    marked = [cell for cell in cells if cell.source.startswith("%%needs XLA")]
    assert len(marked) >= 10
    for cell in marked:
        printed = "".join(output["text"] for output in cell.outputs)
        assert printed == f"This cell needs XLA, but {sentence}\n", cell.source
    shown = [cell for cell in cells if cell not in marked and cell.outputs]
    assert len(shown) >= 7
    assert all(output.output_type != "error" for cell in cells for output in cell.outputs)


def test_the_pictures_say_what_they_show(drawn):
    shown = draw_cache([5, 7, 5, 9, 7, 5], [1, 1, 0, 1, 0, 0])
    assert shown.alt == "6 calls with 3 shapes compiled 3 programs."
    places = [tuple(mark.get_offsets()[0]) for mark in drawn[0].collections]
    assert places == [(1, 5), (2, 7), (3, 5), (4, 9), (5, 7), (6, 5)]
    white = [mark.get_facecolor()[0].tolist() == [1, 1, 1, 1] for mark in drawn[0].collections]
    assert white == [False, False, True, False, True, True]
    slow = StepTime(trace_s=0.1, compile_s=5.0, run_s=0.2)
    fast = StepTime(trace_s=0.02, compile_s=0.0, run_s=0.2)
    assert draw_steps([slow, slow, fast]).alt.startswith("Only steps 1 and 2 compile; step 3")
    assert draw_steps([fast] * 6).alt.startswith("No step compiles")
    bars = [(bar.get_y(), bar.get_height()) for bar in drawn[1].patches]
    np.testing.assert_allclose(bars[0::3], [(0, 0.1), (0.1, 5.0), (5.1, 0.2)])  # those of step 1
    assert "on a diagonal" in draw_systolic_array(side=3).alt
    cells = [cell.get_facecolor() for cell in drawn[-1].patches]
    works = [cell != cells[1] for cell in cells]  # the second one waits for the first
    cycles = [
        [row + column == cycle for row in range(3) for column in range(3)] for cycle in range(3)
    ]
    assert works == [each for cycle in cycles for each in cycle]
    arrows = [text for text in drawn[-1].texts if getattr(text, "arrow_patch", None)]
    assert len(arrows) == 2 * (1 + 2 + 3)  # to the right and down, from each that works
