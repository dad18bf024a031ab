"""Run a script unchanged, on GPUs that are not there: python -m course_tools.rehearsal SCRIPT."""

import argparse
import os
import runpy
import sys
import tempfile
import traceback
from types import TracebackType
from typing import NamedTuple

from course_tools.rehearsal.compiled_code import explain
from course_tools.rehearsal.lines import HERE
from course_tools.rehearsal.processes import USED_FOLDER, leave_file
from course_tools.rehearsal.rehearse import LastStep, begin
from course_tools.rehearsal.report import Report
from course_tools.rehearsal.setting import SIMULATED, Command, setting_of

#: the status of a script that ended well and never used the GPU: no check may pass by it
UNTOUCHED = 3


def options(arguments: list[str]) -> argparse.Namespace:
    """Return what the command asks for."""
    parser = argparse.ArgumentParser(
        prog="python -m course_tools.rehearsal",
        description="Run a script on simulated GPUs: real errors, values of the CPU, no times. "
        "It ends with the status of the script, with 2 if it cannot begin, and with "
        f"{UNTOUCHED} if the script ended well but nothing ran on the GPU.",
        epilog="example: python -m course_tools.rehearsal --memory 16GB train.py --epochs 1",
    )
    kinds = "kind of device to simulate (default %(default)s)"
    parser.add_argument("--device", choices=SIMULATED, default="cuda", help=kinds)
    ranks = int(os.environ.get("LOCAL_WORLD_SIZE", 1))
    parser.add_argument("--gpus", type=int, default=ranks, help="how many (default %(default)s)")
    memory = "memory of each for tensors, such as 16GB: more ends in a GPU's error"
    parser.add_argument("--memory", help=memory)
    capability = "compute capability of CUDA, such as 7.5 for a T4 (default %(default)s)"
    parser.add_argument("--capability", default="8.0", help=capability)
    parser.add_argument("--steps", type=int, help="end after so many steps of an optimizer")
    real = "hide a real GPU that is here, and simulate one all the same"
    parser.add_argument("--hide-real", action="store_true", help=real)
    details = "show copies, waits and memory also above an error, or a status other than 0"
    parser.add_argument("--details", action="store_true", help=details)
    module = "a module instead of a script, and what it is given"
    parser.add_argument("-m", dest="module", nargs=argparse.REMAINDER, default=[], help=module)
    parser.add_argument("script", nargs="?", help="the script")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="what the script is given")
    found = parser.parse_args(arguments)
    if found.module:
        found.module, *found.arguments = found.module
    elif not found.script:
        parser.error("name the script that trains, or -m and a module")
    try:
        major, minor = found.capability.split(".")
        found.capability = int(major), int(minor)
    except ValueError:
        parser.error(f"--capability {found.capability}: two numbers with a point, 7.5 for a T4")
    if found.steps is not None and found.steps < 1:
        parser.error(f"--steps {found.steps}: at least 1")
    if not found.module and not os.path.isfile(found.script):
        parser.error(f"there is no file {found.script}: name the script that trains")
    if not found.module and not os.access(found.script, os.R_OK):
        parser.error(f"{found.script} cannot be read: its owner has to allow that, or copy it")
    return found


def main() -> int:
    """Rehearse a script; return its status, or one of our own if nothing used the GPU."""
    asked = options(sys.argv[1:])
    if folder := os.environ.get(USED_FOLDER):  # another rehearsal has started this one, and judges
        return rehearse_script(asked, folder)
    with tempfile.TemporaryDirectory() as folder:
        status = rehearse_script(asked, folder)
        if status or os.listdir(folder):
            return status
    print(f"This ends with {UNTOUCHED}, because nothing ran on the GPU.", file=sys.stderr)
    return UNTOUCHED


def rehearse_script(asked: argparse.Namespace, used_folder: str) -> int:
    """Rehearse a script, print what was seen to stderr, and return its status."""
    sys.argv = [asked.module or asked.script, *asked.arguments]
    script = ("-m", asked.module) if asked.module else (os.path.abspath(asked.script),)
    try:
        setting = setting_of(asked.device, asked.gpus, asked.memory, asked.capability)
        command = Command(script, asked.steps, used_folder)
        block = begin(setting, command, hide_real=asked.hide_real)
        rehearsal = block.__enter__()
    except (ValueError, RuntimeError) as refused:
        say(str(refused))
        return 2
    say(f"{asked.gpus} simulated {asked.device}; no time below is a GPU's")
    try:
        end = run_to_its_end(asked)
    finally:
        block.__exit__(None, None, None)
    say_what_was_seen(rehearsal.report, end, asked.details, used_folder)
    return say_how_it_ended(end)


def say(words: str) -> None:
    """Print to stderr, after who says it."""
    rank = os.environ.get("RANK")
    print(f"rehearsal, rank {rank}: {words}" if rank else f"rehearsal: {words}", file=sys.stderr)


class End(NamedTuple):
    """How a script ended."""

    status: int | str | None = 0  #: what sys.exit was given
    error: BaseException | None = None

    @property
    def stopped(self) -> bool:
        """Whether somebody stopped it with Ctrl+C."""
        return isinstance(self.error, KeyboardInterrupt)


def run_to_its_end(asked: argparse.Namespace) -> End:
    """Run the script as Python would, and return how it ended."""
    try:
        if asked.module:
            runpy.run_module(asked.module, run_name="__main__", alter_sys=True)
        else:
            sys.path[0] = os.path.dirname(os.path.abspath(asked.script))
            runpy.run_path(asked.script, run_name="__main__")
    except SystemExit as end:
        return End(end.code)
    except LastStep:
        say(f"ended after {asked.steps} step{'s' * (asked.steps != 1)}, as asked")
    except BaseException as error:
        explain(error)
        return End(1, error)
    return End()


def say_what_was_seen(report: Report, end: End, details: bool, used_folder: str) -> None:
    """Print the report, and leave a file if a GPU was used."""
    if report.touched:
        leave_file(used_folder)
    if report.touched or not os.listdir(used_folder):
        # An error and its cure stand last, and little above them; a run that was stopped has none.
        failed = bool(end.status) and not end.stopped
        say(shown(report, failed and not details))
    else:
        say("only processes that this one started used the GPU")


def say_how_it_ended(end: End) -> int:
    """Print the error or the last words, if there are any, and return the status for a shell."""
    if end.error is not None:
        trace = without_tool(end.error.__traceback__)
        traceback.print_exception(type(end.error), end.error, trace)
        return 130 if end.stopped else 1
    if isinstance(end.status, str):
        print(end.status, file=sys.stderr)
        return 1
    return end.status or 0


def shown(report: Report, short: bool) -> str:
    """Return a report in words, or its head, with how to see the rest."""
    if not short:
        return repr(report)
    return f"{report.head}\nCopies, waits and memory: the same with --details before the script."


def without_tool(trace: TracebackType | None) -> TracebackType | None:
    """Return a traceback from the script's first line on, without this tool's own lines."""
    frames = []
    while trace is not None:
        name = trace.tb_frame.f_code.co_filename
        if not name.startswith((HERE, "<frozen runpy")):
            frames.append(trace)
        trace = trace.tb_next
    kept = None
    for each in reversed(frames):
        kept = TracebackType(kept, each.tb_frame, each.tb_lasti, each.tb_lineno)
    return kept


if __name__ == "__main__":
    sys.exit(main())
