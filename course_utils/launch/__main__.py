"""The command `python -m course_utils.launch`."""

import argparse
import os
import signal
import sys
from dataclasses import MISSING, fields
from typing import NoReturn

from course_utils.launch.parent import RunError, run_training
from course_utils.launch.request import LaunchError, Request
from course_utils.show_result import show_result

EXAMPLES = """examples:
  python -m course_utils.launch --training my_training.py:make
  python -m course_utils.launch --training my_training.py:make --count 2 --epochs 10 --out runs/a
  python -m course_utils.launch --training my_training.py:make --epochs 30 --out runs/a --resume
  python -m course_utils.launch --training my_training.py:make --strategy ddp

exit status: 0 trained, 1 a rank raised or was killed, 2 the request was refused, 130 Ctrl-C."""


class Parser(argparse.ArgumentParser):
    """A parser that refuses a request in one sentence, without the list of all options."""

    def error(self, message: str) -> NoReturn:
        """Print what is wrong and exit with status 2."""
        self.exit(2, f"launch: {message} (see --help)\n")


def build_parser() -> argparse.ArgumentParser:
    """Return the command line."""
    parser = Parser(
        "python -m course_utils.launch",
        description="Train with Lightning in several processes, one for each device.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--training",
        required=True,
        help="path/to/file.py:function or package.module:function, a function that returns a "
        "LightningModule and its DataLoader",
    )
    parser.add_argument(
        "--strategy",
        help="ddp_spawn: build the training once and send it to the processes; ddp: build it in "
        "each process (default: %(default)s); also Lightning's longer names, such as "
        "ddp_find_unused_parameters_true",
    )
    parser.add_argument(
        "--count", type=int, help="GPUs or CPU processes (default: all GPUs, or one process)"
    )
    parser.add_argument(
        "--accelerator",
        help="auto, cpu or gpu; auto takes the GPUs of NVIDIA or AMD if there are any, and "
        "otherwise the CPU (default: %(default)s)",
    )
    parser.add_argument("--epochs", type=int, help="default: %(default)s")
    parser.add_argument("--seed", type=int, help="default: the training's own, or always the same")
    parser.add_argument(
        "--out",
        metavar="DIR",
        help="where the checkpoint and the result go (default: %(default)s)",
    )
    parser.add_argument(
        "--resume", action="store_true", help="continue from the checkpoint in --out, if any"
    )
    for option in fields(Request):
        if option.default is not MISSING:
            parser.set_defaults(**{option.name: option.default})
    return parser


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return the exit status."""
    if hasattr(sys.stdout, "reconfigure"):  # the training prints UTF-8; the terminal may not
        sys.stdout.reconfigure(errors="backslashreplace")
    options = vars(build_parser().parse_args(arguments))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        show_result(run_training(**options))
    except LaunchError as error:
        print(f"launch: {error}", file=sys.stderr)
        return 2
    except RunError as error:
        print(f"launch: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:  # such as `... | head -1`, which has what it wanted
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 128 + signal.SIGPIPE
    except KeyboardInterrupt:
        print("launch: stopped", file=sys.stderr)
        return 128 + signal.SIGINT
    return 0


if __name__ == "__main__":
    sys.exit(main())
