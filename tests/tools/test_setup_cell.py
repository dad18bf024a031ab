"""The tool that writes the set-up cell, and the launch links once there is an address."""

import json
import shutil
from dataclasses import replace

import pytest
from start_python import python

from tools.setup_cell import (
    ROOT,
    launch_links,
    read_address,
    setup_cell,
    stamp,
    without_links_to_files,
)

LESSONS = sorted((ROOT / "notebooks").glob("*.ipynb"))
FILES = ["pyproject.toml", "README.md", *(f"notebooks/{lesson.name}" for lesson in LESSONS)]
NOWHERE = replace(read_address(), repository="", branch="lessons", published=False)
SOMEWHERE = replace(NOWHERE, repository="Ada/gpu.course_1", branch="autumn/2026")


@pytest.fixture
def copy(tmp_path):
    """A copy of what the tool writes to, without an address."""
    (tmp_path / "notebooks").mkdir()
    for name in FILES:
        shutil.copy(ROOT / name, tmp_path / name)
    stamp(tmp_path, NOWHERE)
    return tmp_path


def texts(root) -> dict[str, str]:
    return {name: (root / name).read_text(encoding="utf-8") for name in FILES}


def test_every_lesson_gets_the_same_folded_cell_with_its_name(copy):
    for lesson in LESSONS:
        cells = json.loads((copy / "notebooks" / lesson.name).read_text("utf-8"))["cells"]
        cell = next(cell for cell in cells if cell["id"].endswith("-setup"))
        assert "".join(cell["source"]) == setup_cell(NOWHERE, lesson.stem[3:])
        assert f'set_up("{lesson.stem[3:]}")' in setup_cell(NOWHERE, lesson.stem[3:])
        assert cell["metadata"]["jupyter"] == {"source_hidden": True}
        assert "nbval-ignore-output" in cell["metadata"]["tags"]


def test_without_an_address_nobody_sees_a_link_or_a_placeholder(copy):
    for name, text in texts(copy).items():
        assert "Launch:" not in text and "colab.research.google.com/github" not in text, name
        assert "OWNER" not in text and "ADDRESS" not in text, name


def test_an_address_is_written_everywhere_and_comes_out_again_without_a_trace(copy):
    before = texts(copy)
    changed = stamp(copy, SOMEWHERE)
    assert len(changed) == len(FILES)
    after = texts(copy)
    for lesson in LESSONS:
        for link in launch_links(SOMEWHERE, lesson.name).values():
            assert link in after[f"notebooks/{lesson.name}"] and link in after["README.md"]
    assert "git clone https://github.com/Ada/gpu.course_1 course" in after["README.md"]
    page = "https://ada.github.io/gpu.course_1/worth-it.html"
    assert f"[Ask the page]({page})" in after["README.md"].splitlines()[2]
    assert f'<a href="{page}"><picture>' in after["README.md"]
    assert 'Issues = "https://github.com/Ada/gpu.course_1/issues"' in after["pyproject.toml"]
    assert stamp(copy, SOMEWHERE) == []
    stamp(copy, NOWHERE)
    assert texts(copy) == before


def test_a_link_from_a_lesson_alone_leads_to_the_book_or_is_plain_words():
    others = "[A](https://a.org/b.md) and [B](#b)"
    text = f"[Lesson 2](02_gpu.ipynb#a-b), [old code](../tools/book/pages/old_code.md), {others}"
    assert without_links_to_files(text, NOWHERE) == f"Lesson 2, old code, {others}"
    book = "https://ada.github.io/gpu.course_1"
    linked = f"[Lesson 2]({book}/02_gpu.html), [old code]({book}/old_code.html), {others}"
    assert without_links_to_files(text, SOMEWHERE) == linked


def test_the_cell_installs_what_is_published_else_the_wheel_of_the_release():
    wheel = f"releases/download/v{NOWHERE.version}/accelerator_course-{NOWHERE.version}-py3"
    assert f"https://github.com/{SOMEWHERE.repository}/{wheel}" in setup_cell(SOMEWHERE)
    published = setup_cell(replace(SOMEWHERE, published=True))
    assert f"%pip install --quiet --no-deps accelerator-course=={NOWHERE.version}" in published


@pytest.mark.process
@pytest.mark.parametrize(
    "words",
    [("--repository", "course"), ("--repository", 'a/b"'), ("--branch", "two words")],
    ids=" ".join,
)
def test_what_is_not_an_address_is_refused(words):
    done = python(ROOT / "tools" / "setup_cell.py", *words, fresh=True)
    assert done.returncode == 2 and "is not" in done.stderr
