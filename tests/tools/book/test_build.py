"""How a lesson becomes a page of the book. What the pages look like is tested in
tests/browser/test_book.py.
"""

import sys
from dataclasses import replace

import nbformat
import pytest

from tools.book import build
from tools.copies import LESSONS

GLOSSARY = "# G\n\n```{glossary}\nbatch\nbatch size\n  The samples.\n\nGPU\n  A card.\n```\n"


def test_words_are_read_with_their_other_forms():
    assert build.words(GLOSSARY) == {"batch": "batch", "batch size": "batch", "GPU": "GPU"}


@pytest.mark.parametrize(
    ("text", "linked"),
    [
        ("A batch, then a batch.", "A {term}`batch <batch>`, then a batch."),
        (
            "Batches no, batchs and `batch` no.",
            "Batches no, {term}`batchs <batch>` and `batch` no.",
        ),
        ("# The GPU\n\nTwo GPUs.", "# The GPU\n\nTwo {term}`GPUs <GPU>`."),
        ("The batch size counts.", "The {term}`batch size <batch>` counts."),
        ("A batch size, a batch.", "A {term}`batch size <batch>`, a batch."),  # one entry
        ("[a GPU](gpu.md) and gpu", "[a GPU](gpu.md) and gpu"),
        ("```\nGPU\n```", "```\nGPU\n```"),
        ("<summary>a GPU</summary> GPU", "<summary>a GPU</summary> {term}`GPU <GPU>`"),
    ],
)
def test_a_word_is_linked_once_in_prose_alone(text, linked):
    assert build.with_links(text, build.words(GLOSSARY)) == linked


def test_what_was_linked_in_one_cell_is_not_linked_in_the_next():
    left = build.words(GLOSSARY)
    build.with_links("A batch.", left)
    assert build.with_links("A batch on a GPU.", left) == "A batch on a {term}`GPU <GPU>`."


def test_every_word_of_the_glossary_has_an_entry_of_its_own_and_a_table_compares_three_makers():
    text = (build.HERE / "pages" / "glossary.md").read_text(encoding="utf-8")
    entries = list(dict.fromkeys(build.words(text).values()))
    assert len(entries) >= 60 and entries == sorted(entries, key=str.lower)
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert "NVIDIA" in rows[0] and "AMD" in rows[0] and "TPU" in rows[0] and len(rows) > 12


def test_the_launch_links_appear_with_an_address_and_the_download_always(monkeypatch):
    somewhere = replace(build.read_address(), repository="ada/course")
    monkeypatch.setattr(build, "read_address", lambda: replace(somewhere, repository=""))
    line = build.open_line(LESSONS[0])
    assert line.startswith("{download}`Download this lesson <copies/") and "Report" not in line
    monkeypatch.setattr(build, "read_address", lambda: somewhere)
    line = build.open_line(LESSONS[0])
    assert all(f"[Open it in {host}](https://" in line for host in ("Colab", "Kaggle", "Binder"))
    assert "[Report a mistake](https://github.com/ada/course/issues/new" in line


def test_the_opening_picture_stands_under_the_question_and_above_the_aims():
    page = build.page_of(nbformat.read(LESSONS[0], as_version=4), LESSONS[0], {})
    question, picture, aims = page.cells[:3]
    assert "**The question:**" in question.source and aims.source.startswith("After this lesson")
    assert [set(output.data) for output in picture.outputs] == [{"image/png", "text/plain"}]
    assert picture.metadata.tags == ["remove-input"]


def test_a_panel_that_needs_a_kernel_is_a_sentence():
    panel = nbformat.v4.new_output("display_data", {build.WIDGET: {}, "text/plain": "VBox()"})
    cell = nbformat.v4.new_code_cell("panel", outputs=[panel])
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell("# 1. A"), cell])
    page = build.page_of(notebook, LESSONS[0], {})
    assert page.cells[1].outputs[0].data == {"text/markdown": build.NO_KERNEL}


def test_an_output_that_settles_a_prediction_is_folded_and_no_other():
    asked, again = (nbformat.v4.new_markdown_cell("> **Predict.** How many?") for _ in range(2))
    told = [nbformat.v4.new_output("stream", text="2")]
    settles, plain = (nbformat.v4.new_code_cell("x", outputs=told) for _ in range(2))
    own = nbformat.v4.new_code_cell("x", outputs=told, metadata={"tags": ["exercise"]})
    words = nbformat.v4.new_markdown_cell("Two.")
    cells = [nbformat.v4.new_markdown_cell("# 1. A"), asked, settles, words, plain, again, own]
    page = build.page_of(nbformat.v4.new_notebook(cells=cells), LESSONS[0], {})
    folded = ["hide-output" in cell.metadata.get("tags", []) for cell in page.cells]
    assert folded == [False, False, True, False, False, False, False]


def test_the_reference_names_each_thing_where_it_lives():
    names = build.public_names("course_tools.compare")
    assert "compare_devices" in names["course_tools.compare.comparison"]


def test_badges_become_links_in_words_since_the_book_loads_nothing(tmp_path, monkeypatch):
    badge = "[![Open this lesson in Colab](https://x.org/badge.svg)]"
    readme = f"# A\n\n{badge}(https://colab.research.google.com/y)\n"
    monkeypatch.setattr(build, "ROOT", tmp_path)
    monkeypatch.setattr(build, "DOCUMENTS", {"README.md": "index.md"})
    (tmp_path / "README.md").write_text(readme)
    (tmp_path / "source").mkdir()
    build.write_documents(tmp_path / "source")
    text = (tmp_path / "source" / "index.md").read_text()
    assert "[Open this lesson in Colab](https://colab.research.google.com/y)" in text
    assert "badge" not in text


def test_the_list_of_lessons_comes_before_how_to_get_the_course(tmp_path):
    build.write_documents(tmp_path)
    text = (tmp_path / "index.md").read_text(encoding="utf-8")
    parts = [
        "## The lessons",
        "## Half an hour",
        "## Run it yourself",
        "git clone",
        "## What is in",
    ]
    places = [text.index(part) for part in parts]
    assert places == sorted(places) and all(text.count(part) == 1 for part in parts)


def test_what_sphinx_leaves_beside_the_book_is_not_seen_by_git():
    ignored = (build.ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()
    assert {"tools/book/html*/", "tools/book/jupyter_execute/"} <= set(ignored)


def test_a_folder_with_files_of_somebody_else_gets_no_book(tmp_path, monkeypatch, capsys):
    (tmp_path / "index.html").write_text("my work")
    monkeypatch.setattr(sys, "argv", ["build.py", "--out", str(tmp_path)])
    with pytest.raises(SystemExit):
        build.main()
    assert "files of others" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["index.html"]
