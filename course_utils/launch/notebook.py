"""Launch from a notebook cell, and turn a lesson that a cell defines into a file that can be launched."""

import ast
import builtins
import linecache
import sys
from collections.abc import Callable
from pathlib import Path

from course_utils.launch.options import LaunchError, Options
from course_utils.launch.run_result import RunResult
from course_utils.launch.supervise import launch
from course_utils.launch.view import View

DEFINITIONS = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef, ast.Assign, ast.AnnAssign)


def run_lesson(
    lesson: str | Callable,
    *,
    devices: int | str = 2,
    strategy: str = "ddp_spawn",
    out: str | Path = "runs/notebook",
    bar: bool = True,
    **options,
) -> RunResult | None:
    """Train a lesson in processes outside of this kernel, and show what they say while they run.

    The stop button of the notebook ends every one of them.

    Args:
        lesson: its name, "path/to/file.py:function", or a function of this notebook, whose cell is then saved as
            lesson_NAME.py in `out`; see `save_lesson`.
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
    if callable(lesson):
        lesson = save_lesson(lesson, Path(out) / f"lesson_{lesson.__name__}.py")
    choice = Options(lesson, strategy=strategy, devices=devices, out=str(out), **options)
    return launch(choice, View(sys.stdout, bar=bar))


def save_lesson(make_lesson: Callable, path: str | Path) -> str:
    """Write the cell that defines a function to a file, and return the name by which to launch it.

    The file gets the imports, functions, classes and assignments of that cell, and nothing else of the notebook.

    Args:
        make_lesson: a function of the notebook that returns a LightningModule and its data.
        path: where to write, such as "my_lesson.py".

    Returns:
        Such as "my_lesson.py:make_lesson", for `--lesson`.

    Raises:
        LaunchError: the cell cannot be found, or it uses something that another cell defines.
    """
    cell = "".join(linecache.getlines(make_lesson.__code__.co_filename))
    if not cell:
        raise LaunchError(
            f"the source of {make_lesson.__name__}() cannot be found. Define it in a cell, run that cell, try again."
        )
    tree = ast.parse(_without_magics(cell))
    tree.body = [node for node in tree.body if isinstance(node, DEFINITIONS)]
    elsewhere = sorted(_names_from_elsewhere(tree) & make_lesson.__globals__.keys())
    if elsewhere:
        raise LaunchError(
            f"the cell of {make_lesson.__name__}() uses {', '.join(elsewhere)}, which another cell defines. A process "
            f"outside of this notebook has only that one cell: import or define it there too."
        )
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = _without_magics(cell).splitlines()
    parts = ["\n".join(lines[_first_line(node) - 1 : node.end_lineno]) for node in tree.body]
    path.write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    return f"{path}:{make_lesson.__name__}"


def _without_magics(cell: str) -> str:
    # Lines for IPython alone keep their place, so that line numbers in a traceback stay true.
    return "\n".join("" if line.startswith(("%", "!")) else line for line in cell.splitlines())


def _first_line(node: ast.stmt) -> int:
    return min([node.lineno, *(decorator.lineno for decorator in getattr(node, "decorator_list", ()))])


def _names_from_elsewhere(tree: ast.Module) -> set[str]:
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    bound = {name.id for name in names if not isinstance(name.ctx, ast.Load)} | set(dir(builtins))
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            bound.add(node.name)
        elif isinstance(node, ast.arg):
            bound.add(node.arg)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            bound |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ExceptHandler) and node.name:
            bound.add(node.name)
    return {name.id for name in names if isinstance(name.ctx, ast.Load)} - bound
