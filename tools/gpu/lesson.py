"""Execute one lesson on this machine and keep its outputs: `python tools/gpu/lesson.py LESSON.ipynb
--out DIR`.

With nbclient and ipykernel the executed notebook is written to DIR/lessons. Without them, as on a
machine that has torch alone, the code cells run one after the other in a plain Python, and what
they print is kept as text.
"""

import argparse
import ast
import contextlib
import importlib.util
import io
import json
import sys
import traceback
from pathlib import Path

from tools.gpu.run import without_names

NEEDED = ("nbclient", "nbformat", "ipykernel", "ipywidgets")


def main() -> int:
    """Execute the lesson; return 0 when every cell ran to its end."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("lesson", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--dry", action="store_true")
    asked = parser.parse_args()
    folder = asked.out / "lessons"
    folder.mkdir(parents=True, exist_ok=True)
    if asked.dry:
        return check_cells(asked.lesson)
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if not missing:
        return execute_notebook(asked.lesson, folder / asked.lesson.name)
    print(f"{', '.join(missing)} not installed: the cells run in a plain Python, without pictures.")
    return execute_cells(asked.lesson, folder / f"{asked.lesson.stem}.txt")


def execute_notebook(lesson: Path, target: Path) -> int:
    """Execute a notebook as Jupyter does and go on after an error; its outputs are kept after every
    cell.
    """
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(lesson, as_version=4)

    def keep(**_: object) -> None:
        target.write_text(without_names(nbformat.writes(notebook)), encoding="utf-8")

    options = {"store_widget_state": False, "allow_errors": True, "on_cell_executed": keep}
    NotebookClient(
        notebook, resources={"metadata": {"path": str(lesson.parent)}}, **options
    ).execute()
    keep()
    failed = 0
    for number, cell in enumerate(notebook.cells):
        for error in (
            output for output in cell.get("outputs", ()) if output.output_type == "error"
        ):
            failed += 1
            print(f"cell {number}: {error.ename}: {error.evalue}"[:500])
    return 1 if failed else 0


def code_cells(lesson: Path) -> list[tuple[int, str]]:
    """Return number and source of every code cell."""
    cells = json.loads(lesson.read_text(encoding="utf-8"))["cells"]
    return [
        (number, "".join(cell["source"]))
        for number, cell in enumerate(cells)
        if cell["cell_type"] == "code"
    ]


def is_plain(source: str) -> bool:
    """Say whether a cell is Python alone, without what only IPython understands."""
    return not any(line.lstrip().startswith(("%", "!")) for line in source.splitlines())


def check_cells(lesson: Path) -> int:
    """Compile every plain cell: what a rehearsal can say of a lesson, which the tests execute
    anyway.
    """
    for number, source in code_cells(lesson):
        if is_plain(source):
            compile(source, f"{lesson.name}[{number}]", "exec")
    return 0


def execute_cells(lesson: Path, target: Path) -> int:
    """Execute the plain cells of a lesson in this process, and write what they print; go on after
    an error.
    """
    names: dict[str, object] = {"__name__": "__main__", "display": print}
    failed = 0
    with target.open("w", encoding="utf-8") as file:
        for number, source in code_cells(lesson):
            if not is_plain(source):
                file.write(f"[{number}] left out: it needs IPython\n")
                continue
            said = io.StringIO()
            with contextlib.redirect_stdout(said):
                error = execute_cell(source, f"{lesson.name}[{number}]", names)
            file.write(without_names(f"[{number}]\n{said.getvalue()}{error}\n"))
            if error:
                failed += 1
                print(f"cell {number}: {error.splitlines()[-1]}")
    return 1 if failed else 0


def execute_cell(source: str, name: str, names: dict[str, object]) -> str:
    """Run one cell, show the value of its last expression, and return its traceback, or nothing."""
    tree = ast.parse(source, name)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    try:
        exec(compile(tree, name, "exec"), names)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), name, "eval"), names)
            if value is not None:
                names["_"] = value  # as in IPython
                print(repr(value))
    except Exception:
        return traceback.format_exc()
    return ""


if __name__ == "__main__":
    sys.exit(main())
