"""Train a lesson in several processes: `python -m course_utils.launch --lesson air_rnn --devices
2`.

In a notebook: `from course_utils.launch import run_lesson`. It needs Linux or macOS (on Windows:
WSL).
"""

import argparse
import os
import signal
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

from course_utils.launch.clusters import find_cluster
from course_utils.launch.lessons import check_lesson
from course_utils.launch.messages import LaunchError, RunError, calm_lightning
from course_utils.launch.options import Options, trainer_arguments
from course_utils.launch.supervise import launch
from course_utils.launch.view import RunResult, View
from course_utils.text import show_result

__all__ = ["RunError", "calm_lightning", "main", "run_lesson"]

EXAMPLES = """examples:
  python -m course_utils.launch --lesson air_rnn --strategy ddp_spawn --devices 2 --epochs 20 --out runs/first
  python -m course_utils.launch --lesson air_rnn --devices 2 --epochs 40 --out runs/first --resume
  python -m course_utils.launch --lesson my_lesson.py:make_lesson --dry-run

on two machines that share the folder runs/, the same on each:
  torchrun --nnodes=2 --nproc-per-node=1 --rdzv-backend=c10d --rdzv-endpoint=HOST:29500 \\
    -m course_utils.launch --lesson air_rnn --out runs/both --resume

exit status: 0 trained, 1 a rank failed or hung, 2 the request was refused, 130 stopped with Ctrl-C."""


def build_parser() -> argparse.ArgumentParser:
    """Return the command line."""
    parser = argparse.ArgumentParser(
        "python -m course_utils.launch",
        description="Train a lesson in several processes, each with its own device, watch over them, and end them all.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--lesson",
        required=True,
        help="air_rnn, image_cnn, or your own: path/to/file.py:make_lesson",
    )
    for one in fields(Options)[1:]:  # all but the lesson
        name = one.name.removesuffix("_s").replace("_", "-")
        parser.add_argument(f"--{name}", default=one.default, dest=one.name, **one.metadata)
    parser.add_argument(
        "--json", action="store_true", help="print the result as JSON, and all else to stderr"
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="print the Trainer's arguments and stop"
    )
    return parser


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return the exit status."""
    try:
        _run(vars(build_parser().parse_args(arguments)))
        return 0
    except KeyboardInterrupt:
        print("launch: stopped.", file=sys.stderr)
        return 128 + signal.SIGINT
    except BrokenPipeError:  # the reader of `... | head` has gone, and the run has ended
        for number in (1, 2):
            os.dup2(os.open(os.devnull, os.O_WRONLY), number)
        return 128 + signal.SIGPIPE
    except (LaunchError, RunError) as error:
        print(f"launch: {error}", file=sys.stderr)
        return 2 if isinstance(error, LaunchError) else 1
    except ModuleNotFoundError as error:
        advice = "Install it: pip install 'accelerator-course[lessons]'"
        print(
            f"launch: it needs {error.name}, which is not installed here. {advice}", file=sys.stderr
        )
        return 2


def _run(chosen: dict[str, Any]) -> None:
    as_json, dry_run = chosen.pop("json"), chosen.pop("dry_run")
    options = Options(**chosen)
    if dry_run:
        check_lesson(options.lesson)
        call = trainer_arguments(options, find_cluster(os.environ)).items()
        return show_result(
            "\n".join(["Trainer(", *(f"    {name}={value!r}," for name, value in call), ")"])
        )
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    stream = (sys.stderr if as_json else sys.stdout) or open(os.devnull, "w")  # noqa: SIM115  (closed by `>&-`)
    if result := launch(options, View(stream, bar=stream.isatty())):
        show_result(result.to_json() if as_json else result)


def run_lesson(
    lesson: str, *, out: str | Path = "runs/notebook", bar: bool = True, **options: Any
) -> RunResult | None:
    """Train a lesson in processes outside of this kernel, and show what they print. The stop button
    ends them all.

    Args:
        lesson: its name, or "path/to/file.py:function"; `%%writefile` makes such a file of a cell.
        out: folder for checkpoint and results.
        bar: whether to show a progress bar.
        **options: the other fields of `Options`, such as `devices=2`, `epochs=5` or `resume=True`.

    Raises:
        LaunchError: the request was refused.
        RunError: a rank raised, was killed, or fell silent.
    """
    return launch(Options(lesson, out=str(out), **options), View(sys.stdout, bar=bar))
