"""Launch from a notebook cell."""

import sys
from pathlib import Path
from typing import Any

from course_utils.launch.options import Options
from course_utils.launch.run_result import RunResult
from course_utils.launch.supervise import launch
from course_utils.launch.view import View


def run_lesson(
    lesson: str,
    *,
    devices: int | str = 2,
    strategy: str = "ddp_spawn",
    out: str | Path = "runs/notebook",
    bar: bool = True,
    **options: Any,
) -> RunResult | None:
    """Train a lesson in processes outside of this kernel, and show what they print. The stop button ends them all.

    Args:
        lesson: its name, or "path/to/file.py:function"; a cell becomes such a file with `%%writefile`.
        devices: how many devices; on a CPU, how many processes.
        strategy: how the processes start.
        out: folder for checkpoint and results.
        bar: whether to show a progress bar.
        **options: the other fields of `Options`, such as `epochs=5`, `global_batch=32` or `resume=True`.

    Returns:
        The losses of each epoch, the metrics, the checkpoint, the time, and the samples of each rank.

    Raises:
        LaunchError: the request was refused.
        RunError: a rank raised, was killed, or fell silent.
    """
    choice = Options(lesson, strategy=strategy, devices=devices, out=str(out), **options)
    return launch(choice, View(sys.stdout, bar=bar))
