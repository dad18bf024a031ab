"""The cell magic `%%needs XLA`: run the cell where that is here, and say in one sentence why not where it is not."""

import ast
import sys
from typing import Any


def what_cells_need(**problems: str | None) -> None:
    """Give this notebook the cell magic `%%needs NAME ...`.

    Args:
        problems: for each NAME that a cell may need, a sentence that says why it is missing, or None where it is here.
    """
    from IPython import get_ipython

    shell = get_ipython()

    def needs(line: str, cell: str) -> None:
        missing = [f"This cell needs {name}, but {problems[name]}" for name in line.split() if problems[name]]
        if missing:
            print(missing[0])
        else:
            _run(shell, "\n" + cell)  # an empty line in place of the magic, so that errors name the right lines

    shell.register_magic_function(needs, "cell")


def _run(shell: Any, source: str) -> None:
    """Run a cell as it would run without the magic: it shows the value of its last line, and its errors are its own."""
    file = shell.compile.cache(source)
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, file, "exec"), shell.user_ns)
    if isinstance(last, ast.Expr):
        sys.displayhook(eval(compile(ast.Expression(last.value), file, "eval"), shell.user_ns))
