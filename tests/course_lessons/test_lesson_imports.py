"""A lesson imports from at most five modules of ours, all of its cells together, and its package
what it uses.
"""

import ast
import re
from pathlib import Path

import nbformat
import pytest
from course_lessons.exercises.progress import NOTEBOOKS

ROOT = Path(__file__).resolve().parents[2]
LESSONS = sorted((ROOT / "notebooks").glob("*.ipynb"))


def modules_of(lesson: Path) -> set[str]:
    """Return the modules of ours that a notebook's code cells import from; magics are left out, and
    so is set-up.
    """
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


@pytest.mark.parametrize(("folder", "lesson"), NOTEBOOKS.items())
def test_the_package_of_a_lesson_imports_only_what_the_lesson_or_it_itself_uses(folder, lesson):
    """Its imports are the list of what the notebook takes from it, and so ruff cannot say which are
    left over.
    """
    source = (ROOT / "course_utils" / "lessons" / folder / "__init__.py").read_text(
        encoding="utf-8"
    )
    tree = ast.parse(source)
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    names = {
        alias.asname or alias.name.partition(".")[0] for node in imports for alias in node.names
    }
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    cells = nbformat.read(
        ROOT / "notebooks" / f"{lesson}.ipynb", as_version=nbformat.NO_CONVERT
    ).cells
    code = "\n".join(cell.source for cell in cells if cell.cell_type == "code")
    assert not [name for name in names - used if not re.search(rf"\b{name}\b", code)]
