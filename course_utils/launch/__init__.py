"""Train a lesson in several processes: `python -m course_utils.launch --lesson air_rnn --devices 2`.

In a notebook: `from course_utils.launch import run_lesson`. It needs Linux or macOS (on Windows: WSL).
"""

from course_utils.launch.cli import main, run_lesson
from course_utils.launch.clusters import cluster_command
from course_utils.launch.messages import RunError, calm_lightning

__all__ = ["RunError", "calm_lightning", "cluster_command", "main", "run_lesson"]
