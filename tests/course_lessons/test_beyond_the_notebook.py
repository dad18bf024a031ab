"""The lesson beyond the notebook: its picture, and its job for a cluster."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from course_lessons.beyond_the_notebook import exercises
from course_lessons.beyond_the_notebook.pictures import draw_starts
from course_lessons.prepare_ranks import prepare_ranks
from start_python import torchrun

from course_utils.launch.environment import clean_environment

LESSON = Path(__file__).parents[2] / "notebooks" / "04_beyond_the_notebook.ipynb"


def test_the_picture_says_in_words_what_each_way_starts_from():
    alt = draw_starts().alt
    assert "fork: this notebook's kernel becomes a copy of it, with all its memory" in alt
    assert "spawn: a file becomes" in alt and "torchrun: a file becomes" in alt


def test_a_script_that_does_not_end_is_stopped_after_a_minute(monkeypatch):
    def run(command, *, timeout, **_):
        raise subprocess.TimeoutExpired(command, timeout)

    monkeypatch.setattr(exercises.subprocess, "run", run)
    assert "has not ended after 60 seconds" in exercises.guard.check("pass").message


@pytest.mark.process
@pytest.mark.skipif(not shutil.which("bash"), reason="a job for SLURM is a script of bash")
def test_the_job_starts_torchrun_once_with_the_machines_and_gpus_that_slurm_names(tmp_path):
    cells = nbformat.read(LESSON, as_version=nbformat.NO_CONVERT).cells
    job = next(cell.source for cell in cells if cell.source.startswith("%%writefile train.sbatch"))
    (tmp_path / "job").write_text(job.partition("\n")[2])
    (tmp_path / ".venv/bin").mkdir(parents=True)
    (tmp_path / ".venv/bin/activate").write_text("")
    for name, line in {"srun": 'printf "%s\\n" "$@"', "scontrol": "printf 'a1\\na2\\n'"}.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{line}\n")
        (tmp_path / name).chmod(0o755)
    slurm = {"NNODES": "2", "GPUS_ON_NODE": "4", "JOB_ID": "17", "JOB_NODELIST": "a[1-2]"}
    slurm["SUBMIT_DIR"] = "/shared/my run"
    environment = {f"SLURM_{name}": value for name, value in slurm.items()}
    environment |= {"HOME": str(tmp_path), "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    command = ["bash", "-eu", "job"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    own, *words = done.stdout.splitlines()
    options = dict(zip(words[1:11:2], words[2:12:2], strict=True))
    # srun does not inherit it from sbatch between Slurm 22.05 and 23.11
    assert own == "--cpus-per-task=16" and "#SBATCH --cpus-per-task=16" in job
    assert done.stderr == "" and words[0] == "torchrun"
    assert options["--nnodes"] == "2" and options["--nproc-per-node"] == "4"
    assert options["--rdzv-endpoint"] == "a1:29500" and options["--rdzv-id"] == "17"
    assert words[words.index("--checkpoint") + 1] == "/shared/my run/checkpoint.pt"


# A machine with one GPU, as fully_shard sees it: whoever takes it ends in "invalid device ordinal".
ONE_GPU = """import runpy, sys

import torch

torch._C._get_accelerator = lambda: torch.device("cuda")
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


@pytest.mark.process
@pytest.mark.parametrize("what", ["04-holds-file", "04-fsdp-file"])
def test_two_ranks_on_the_cpu_leave_the_one_gpu_of_a_machine_alone(what, tmp_path):
    cells = nbformat.read(LESSON, as_version=nbformat.NO_CONVERT).cells
    source = next(cell.source for cell in cells if cell.id == what)
    (tmp_path / "script.py").write_text(source.partition("\n")[2])
    (tmp_path / "one_gpu.py").write_text(ONE_GPU)
    asked = ["--device", "cpu", "--images", "40", "--epochs", "1"] if what == "04-fsdp-file" else []
    each = torchrun(2, "one_gpu.py", "script.py", *asked, cwd=tmp_path)
    assert not any(done.returncode for done in each), each[0].stderr[-2000:]
    printed = "".join(done.stdout for done in each)
    assert "holds [500, 1000] of [1000, 1000]" in printed or "epoch 1" in printed


@pytest.mark.process
def test_what_torch_2_9_makes_python_3_13_say_in_each_process_is_not_shown(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONWARNINGS", "ignore:mine")
    monkeypatch.setenv("PYTHON_COLORS", "1")
    asked = []
    needs = "course_lessons.prepare_ranks.what_cells_need"
    monkeypatch.setattr(needs, lambda **each: asked.append(sorted(each)))
    for _ in range(2):  # a cell may run twice
        prepare_ranks(str(tmp_path / "runs" / "lesson-3"))
    assert asked == [["copies", "ranks"]] * 2 and (tmp_path / "runs" / "lesson-3").is_dir()
    assert os.environ["PYTHONWARNINGS"].count(",") == 1 and os.environ["PYTHON_COLORS"] == "0"
    code = (
        "import warnings; warnings.warn('mine', UserWarning); warnings.warn('functools.partial "
        "will be a method descriptor in future Python versions', FutureWarning)"
    )
    for environment in (dict(os.environ), clean_environment(os.environ)):
        command = [sys.executable, "-c", code]
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")
