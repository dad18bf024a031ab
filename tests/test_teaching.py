"""Every cell, heading, file and command that the teacher's guide names is there."""

import importlib.util
import re
from pathlib import Path

import nbformat
import pytest

from course_utils.exercises import Exercise

ROOT = Path(__file__).resolve().parent.parent
GUIDE = (ROOT / "notebooks" / "TEACHING.md").read_text(encoding="utf-8")
LESSONS = {int(path.name[:2]): path for path in sorted((ROOT / "notebooks").glob("*.ipynb"))}
ID = r"\d\d-\d\d[a-z]?"
SECTIONS = dict(re.findall(r"^## Lesson (\d+):.*?\n(.*?)(?=^## |\Z)", GUIDE, re.MULTILINE | re.DOTALL))


def headings_of_cells(path: Path) -> dict[str, set[str]]:
    """Return for each cell's id the headings that it stands under."""
    above, found = {}, {}
    for cell in nbformat.read(path, as_version=4).cells:
        if cell.cell_type == "markdown":
            for marks, words in re.findall(r"^(#+) (.*)$", cell.source, re.MULTILINE):
                above = {level: text for level, text in above.items() if level < len(marks)} | {len(marks): words}
        found[cell.id] = set(above.values())
    return found


CELLS = {cell: headings for path in LESSONS.values() for cell, headings in headings_of_cells(path).items()}


def minutes() -> dict[int, list[float]]:
    """Return the table of minutes: runs in, reading, lecture, exercises."""
    rows = re.findall(r"^\| (\d+) \|(.*)\|$", GUIDE, re.MULTILINE)
    return {int(number): [float(cell) for cell in cells.split("|")] for number, cells in rows}


def test_every_lesson_has_a_section_with_questions_misconceptions_and_a_plan_b():
    assert {int(number) for number in SECTIONS} == set(LESSONS)
    for number, text in SECTIONS.items():
        for part in ("**Ask", "| They think |", "**Live:**", "**Plan B:**"):
            assert part in text, f"lesson {number} lacks {part}"
        assert len(re.findall(r"^\| \"", text, re.MULTILINE)) >= 5, f"lesson {number}"


def test_every_cell_that_is_named_exists():
    named = set(re.findall(rf"`({ID})`", GUIDE))
    assert len(named) > 60
    assert named <= set(CELLS)


def test_every_cell_stands_under_the_heading_that_is_named_with_it():
    pairs = re.findall(rf"\*([^*\n]+)\*,? \(?((?:[^()|\n]*?`{ID}`)+)", GUIDE)
    assert len(pairs) > 50
    for heading, cells in pairs:
        for cell in re.findall(ID, cells):
            assert heading in CELLS[cell], f"{cell} is under {CELLS[cell]}, not under {heading!r}"


@pytest.mark.parametrize("number", SECTIONS)
def test_a_misconception_is_settled_by_a_cell_of_its_lesson_that_runs(number):
    code = {cell.id for cell in nbformat.read(LESSONS[int(number)], as_version=4).cells if cell.cell_type == "code"}
    for line in re.findall(r"^\| \".*$", SECTIONS[number], re.MULTILINE):
        assert set(re.findall(ID, line)) & code, line


def test_minutes_are_those_of_the_readme_and_of_the_lessons():
    table = minutes()
    assert set(table) == set(LESSONS)
    words = {"half a minute": 0.5, "1 minute": 1, "2 minutes": 2, "3 minutes": 3}
    text = (ROOT / "README.md").read_text()
    readme = dict(re.findall(r"^\| (\d+) \| \[.*?\]\(.*?\) \| (.*?) \|", text, re.MULTILINE))
    for number, (runs, reading, lecture, exercises) in table.items():
        opening = nbformat.read(LESSONS[number], as_version=4).cells[0].source
        assert runs == words[readme[str(number)]]
        assert reading == float(re.search(r"plan (\d+) minutes to read", opening)[1])
        assert exercises == float(re.search(r"and (\d+) for the exercises", opening)[1])
        assert lecture >= reading


def test_every_command_and_file_that_is_named_exists():
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"`make (\w+)`", GUIDE)) <= targets
    modules = set(re.findall(r"python -m (course_utils(?:\.\w+)+)", GUIDE))
    modules |= {f"course_utils.{name}" for name in re.findall(r"from course_utils\.([\w.]+) import", GUIDE)}
    assert "course_utils.compare.classroom" in modules
    assert all(importlib.util.find_spec(module) for module in modules)
    for target in re.findall(r"\]\((?!http)([^)#]+)", GUIDE):
        assert (ROOT / "notebooks" / target).exists(), target
    assert all((ROOT / "notebooks" / name).exists() for name in re.findall(r"\.\./notebooks/(\S+\.ipynb)", GUIDE))


@pytest.mark.process
def test_the_exercise_that_is_shown_exists():
    lesson, name = re.search(
        r"from course_utils\.lessons\.(\w+) import exercises as ex\n\nex\.(\w+)\.check", GUIDE
    ).groups()
    found = getattr(importlib.import_module(f"course_utils.lessons.{lesson}.exercises"), name)
    assert isinstance(found, Exercise)
    assert found.check().status == "not tried"
