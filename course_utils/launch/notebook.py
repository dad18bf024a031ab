"""Launch from a notebook cell."""

import sys
from pathlib import Path
from typing import Any

from course_utils.launch.options import Options
from course_utils.launch.supervise import launch
from course_utils.launch.view import RunResult, View


def run_lesson(lesson: str, *, out: str | Path = "runs/notebook", bar: bool = True, **options: Any) -> RunResult | None:
    """Train a lesson in processes outside of this kernel, and show what they print. The stop button ends them all.

    Args:
        lesson: its name, or "path/to/file.py:function"; `%%writefile` makes such a file of a cell.
        out: folder for checkpoint and results.
        bar: whether to show a progress bar.
        **options: the other fields of `Options`, such as `devices=2` (the default here), `epochs=5` or `resume=True`.

    Raises:
        LaunchError: the request was refused.
        RunError: a rank raised, was killed, or fell silent.
    """
    choice = Options(lesson, out=str(out), **{"devices": 2, "strategy": "ddp_spawn", **options})
    return launch(choice, View(sys.stdout, bar=bar))
