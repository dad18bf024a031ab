"""Train a lesson in several processes: `python -m course_utils.launch --lesson air_rnn --devices 2`.

In a notebook: `from course_utils.launch import run_lesson`. It needs Linux or macOS (on Windows: WSL).
"""

import argparse
import os
import signal
import sys

from course_utils.launch.clusters import cluster_command, find_cluster
from course_utils.launch.lessons import check_lesson
from course_utils.launch.notebook import run_lesson, save_lesson
from course_utils.launch.options import ACCELERATORS, PRECISIONS, STRATEGIES, LaunchError, Options, trainer_arguments
from course_utils.launch.supervise import launch
from course_utils.launch.verdict import RunError
from course_utils.launch.view import View

__all__ = ["LaunchError", "Options", "RunError", "cluster_command", "launch", "main", "run_lesson", "save_lesson"]

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
    parser.add_argument("--lesson", required=True, help="air_rnn, image_cnn, or your own: path/to/file.py:make_lesson")
    _add_machine_options(parser)
    _add_training_options(parser)
    _add_run_options(parser)
    return parser


def _add_machine_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("where").add_argument
    add("--strategy", choices=STRATEGIES, default="auto", help="how the processes start (auto: Lightning chooses)")
    text = "how many devices of each machine; on a CPU, how many processes (auto: all GPUs, or one CPU process)"
    add("--devices", type=_devices, default="auto", metavar="N|auto", help=text)
    add("--accelerator", choices=ACCELERATORS, default="auto", help="what to train on (auto: the best one here)")
    add("--num-workers", type=_count, default=0, metavar="N", help="processes that load data for each rank (default 0)")


def _add_training_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("what").add_argument
    add("--epochs", type=_positive, default=20, metavar="N", help="passes through the data (default 20)")
    text = "samples in a step over all ranks, which share them evenly (default: the lesson's own, 16 for air_rnn)"
    add("--global-batch", type=_positive, metavar="N", help=text)
    add("--precision", choices=PRECISIONS, default="32-true", help="number format (default 32-true)")
    add("--seed", type=_count, default=42, metavar="N", help="of the weights and the order of the data (default 42)")


def _add_run_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("how").add_argument
    add("--out", default="runs/last", metavar="DIR", help="folder for checkpoint and results (default runs/last)")
    add("--resume", action="store_true", help="continue from the checkpoint in --out, if there is one")
    text = "end the run when a rank gives no sign of life for S seconds while it trains (default 600)"
    add("--timeout", type=_seconds, default=600.0, metavar="S", dest="timeout_s", help=text)
    add("--json", action="store_true", help="print the result as one JSON object, and all else to stderr")
    add("--dry-run", action="store_true", help="print the Trainer's arguments and stop")


def _devices(text: str) -> int | str:
    if text == "auto":
        return text
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of devices. Write 1, 2, ... or auto")
    return int(text)


def _positive(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return int(text)


def _count(text: str) -> int:
    if not text.isdigit() or int(text) >= 2**32:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 0")
    return int(text)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < 10**7:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds above 0")
    return seconds


def describe(options: Options) -> str:
    """Return what a run with these options would pass to the Trainer, as code.

    Raises:
        LaunchError: the run would be refused.
    """
    check_lesson(options.lesson)
    cluster = find_cluster(os.environ)
    lines = "\n".join(f"    {name}={value!r}," for name, value in trainer_arguments(options, cluster).items())
    return f"Trainer(\n{lines}\n)"


def _view(stream) -> View:
    return View(stream, bar=stream.isatty())


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return the exit status."""
    namespace = vars(build_parser().parse_args(arguments))
    as_json, dry_run = namespace.pop("json"), namespace.pop("dry_run")
    options = Options(**namespace)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        if dry_run:
            print(describe(options))
            return 0
        result = launch(options, _view(sys.stderr if as_json else sys.stdout))
    except KeyboardInterrupt:
        print("Stopped: every process has ended. --resume continues from the last checkpoint.", file=sys.stderr)
        return 128 + signal.SIGINT
    except LaunchError as error:
        print(f"launch: {error}", file=sys.stderr)
        return 2
    except RunError as error:
        print(f"launch: {error}", file=sys.stderr)
        return 1
    if result:
        print(result.to_json() if as_json else result)
    return 0
