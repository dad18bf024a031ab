"""Which slide each cell of a lesson is on. What the slides look like is tested in tests/browser/test_slides.py."""

import itertools
import re
from pathlib import Path

import nbformat
import pytest

from course_utils.lessons.progress import NOTEBOOKS

ROOT = Path(__file__).resolve().parent.parent
LESSONS = sorted((ROOT / "notebooks").glob("*.ipynb"))
KINDS = {"slide", "subslide", "fragment", "-", "skip", "notes"}


@pytest.fixture(params=LESSONS, ids=lambda path: path.stem)
def cells(request):
    return nbformat.read(request.param, as_version=nbformat.NO_CONVERT).cells


def kind(cell) -> str | None:
    return cell.metadata.get("slideshow", {}).get("slide_type")


def heading(cell) -> int:
    """Return the level of the heading that a cell starts with, 0 without one."""
    found = re.match(r"(#+) ", cell.source) if cell.cell_type == "markdown" else None
    return len(found[1]) if found else 0


def test_every_lesson_has_its_row_in_the_readme_and_its_place_in_the_order():
    names, readme = [path.stem for path in LESSONS], (ROOT / "README.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| \d+ \| \[.*?\]\(notebooks/(\w+)\.ipynb\)", readme, re.MULTILINE) == names
    assert list(NOTEBOOKS.values()) == names


def test_every_cell_has_a_decision(cells):
    undecided = [cell.id for cell in cells if kind(cell) not in KINDS]
    assert not undecided, f"no slide_type in {undecided}: write one of {sorted(KINDS)} ('-' goes on with the slide)"


def test_the_opening_the_sections_and_the_closing_start_slides(cells):
    closing = [cell for cell in cells if cell.cell_type == "markdown"][-1]
    for cell in [cells[0], closing, *(cell for cell in cells if heading(cell) == 2)]:
        assert kind(cell) == "slide", f"{cell.id} is {kind(cell)!r}"


def test_a_smaller_heading_starts_a_slide_below(cells):
    for cell in cells:
        if heading(cell) > 2:
            assert kind(cell) in ("slide", "subslide"), f"{cell.id} is {kind(cell)!r}"


def test_a_heading_stands_at_the_top_of_its_cell_so_that_it_can_start_a_slide(cells):
    for cell in cells:
        if cell.cell_type == "markdown":
            text = re.sub(r"```.*?```", "", cell.source, flags=re.DOTALL)
            below = re.findall(r"^(#+) ", text, re.MULTILINE)[heading(cell) > 0 :]
            assert all(len(level) > heading(cell) > 0 for level in below), f"{cell.id} holds a second heading"


def test_the_set_up_before_the_first_section_is_skipped(cells):
    first_section = next(place for place, cell in enumerate(cells) if heading(cell) == 2)
    assert any(cell.cell_type == "code" for cell in cells[1:first_section])
    assert {kind(cell) for cell in cells[1:first_section]} == {"skip"}


def test_the_answer_to_a_prediction_comes_after_it(cells):
    for cell, after in itertools.pairwise(cells):
        if "**Predict.**" in cell.source and after.cell_type == "code":
            assert kind(after) in ("fragment", "subslide"), f"{after.id} shows the answer at once"


def test_notes_follow_a_slide_and_are_prose(cells):
    shown = False
    for cell in cells:
        if kind(cell) == "notes":
            assert shown and cell.cell_type == "markdown" and not heading(cell), cell.id
        shown = shown or kind(cell) == "slide"


def test_most_of_a_lesson_is_shown(cells):
    cells = [cell for cell in cells if "check" not in cell.metadata.get("tags", [])]
    hidden = [cell.id for cell in cells if kind(cell) in ("skip", "notes")]
    assert len(hidden) < len(cells) / 8, hidden
