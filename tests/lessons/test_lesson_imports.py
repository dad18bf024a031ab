"""A lesson imports from at most five modules of ours, all of its cells together."""

import ast
from pathlib import Path

import nbformat
import pytest

LESSONS = sorted((Path(__file__).resolve().parents[2] / "notebooks").glob("*.ipynb"))


def modules_of(lesson: Path) -> set[str]:
    """Return the modules of ours that a notebook's code cells import from; magics are left out, and so is set-up."""
    found = set()
    for cell in nbformat.read(lesson, as_version=nbformat.NO_CONVERT).cells:
        lines = [line for line in cell.source.splitlines() if not line.startswith(("%", "!"))]
        if cell.cell_type == "code" and not cell.id.endswith("-setup"):
            for node in ast.walk(ast.parse("\n".join(lines))):
                names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
                found |= {node.module} if isinstance(node, ast.ImportFrom) else set(names)
    return {name for name in found if name.partition(".")[0] == "course_utils"}


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda path: path.stem)
def test_a_lesson_imports_from_at_most_five_modules_of_ours(lesson):
    assert 2 <= len(modules_of(lesson)) <= 5, sorted(modules_of(lesson))
