"""The notebooks that people open, made from the lessons, and how they are handed out."""

import ast

import nbformat
import pytest
from nbformat.sign import NotebookNotary
from start_python import python

from tools.copies import GIVEN, LESSONS, ROOT, copy_of, hand_out, main, trust


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda path: path.stem)
def test_a_copy_is_the_lesson_without_outputs_and_checks_and_asks_hosts_for_its_device(lesson):
    copy = nbformat.reads(copy_of(lesson), as_version=4)
    nbformat.validate(copy)
    checked = [cell.id for cell in copy.cells if "check" in cell.metadata.get("tags", [])]
    codes = [cell for cell in copy.cells if cell.cell_type == "code"]
    assert not checked and not any(cell.outputs or cell.execution_count for cell in codes)
    for cell in codes:  # what one host folds, the others do too
        folded = cell.metadata.get("jupyter", {}).get("source_hidden")
        hosts = [cell.metadata.get(name) for name in ("cellView", "_kg_hide-input")]
        assert hosts == (["form", True] if folded else [None, None])
    before = {cell.id: cell.source for cell in nbformat.read(lesson, as_version=4).cells}
    assert all(cell.source == before[cell.id] for cell in codes)
    text = "".join(cell.source for cell in copy.cells if cell.cell_type == "markdown")
    assert "<details>" not in text  # JupyterLab would set the next line right below it
    asked = {"02": "GPU", "03": "GPU", "04": "GPU", "05": "TPU"}.get(lesson.name[:2])
    assert copy.metadata.get("accelerator") == asked
    assert copy.metadata.kaggle.isGpuEnabled is (asked == "GPU")
    folded = [cell for cell in codes if cell.metadata.get("jupyter") == {"source_hidden": True}]
    assert folded and all(cell.metadata.cellView == "form" for cell in folded)


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda path: path.stem)
def test_no_cell_of_a_copy_needs_a_name_that_only_a_check_cell_makes(lesson):
    made, used = set(), set()
    for cell in nbformat.read(lesson, as_version=4).cells:
        if cell.cell_type != "code" or cell.source.lstrip().startswith(("%", "!")):
            continue
        source = "\n".join(
            line for line in cell.source.splitlines() if not line.lstrip().startswith(("%", "!"))
        )
        try:
            names = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Name)]
        except SyntaxError:  # a mistake that the lesson shows
            continue
        if "check" in cell.metadata.get("tags", []):
            made |= {name.id for name in names if isinstance(name.ctx, ast.Store)} - used
        else:
            used |= {name.id for name in names if isinstance(name.ctx, ast.Store)}
            needed = {name.id for name in names if isinstance(name.ctx, ast.Load)} & made - used
            assert not needed, f"{cell.id} needs {needed}, which only a check cell makes"


def test_a_teachers_copy_has_the_solutions_in_place_of_the_dots():
    cells = nbformat.reads(
        copy_of(ROOT / "notebooks" / "01_cpu.ipynb", with_solutions=True), as_version=4
    ).cells
    exercises = [cell.source for cell in cells if "ex.one_epoch.check" in cell.source]
    assert len(exercises) == 1 and "..." not in exercises[0]
    assert exercises[0].startswith("def my_epoch(")
    assert exercises[0].endswith("ex.one_epoch.check(my_epoch)")


def test_a_learners_folder_gets_each_lesson_once_and_says_nothing(tmp_path):
    assert hand_out({"a.ipynb": "one\n"}, tmp_path / "mine") == []
    assert (tmp_path / "mine" / "a.ipynb").read_bytes() == b"one\n"
    assert hand_out({"a.ipynb": "one\n"}, tmp_path / "mine") == []
    (tmp_path / "mine" / GIVEN).unlink()  # whoever has the newest copy has no need of a record
    assert hand_out({"a.ipynb": "one\n"}, tmp_path / "mine") == []


def test_a_folder_that_cannot_be_written_is_enough_where_nothing_is_new(tmp_path, monkeypatch):
    hand_out({"a.ipynb": "one\n"}, tmp_path)

    def refuse(path, *_, **__):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("tools.copies.write_atomically", refuse)
    assert hand_out({"a.ipynb": "one\n"}, tmp_path) == []
    with pytest.raises(PermissionError):
        hand_out({"a.ipynb": "two\n"}, tmp_path)


@pytest.mark.process
def test_a_folder_that_cannot_be_written_is_one_line_that_names_another(tmp_path):
    (tmp_path / "file").touch()
    done = python(ROOT / "tools" / "copies.py", tmp_path / "file", fresh=True)
    assert done.returncode == 1 and done.stderr.endswith("make lab LESSONS=$HOME/my-lessons\n")
    assert done.stderr.count("\n") == 1


def test_a_copy_that_was_changed_is_never_overwritten_and_a_newer_lesson_is_announced(tmp_path):
    hand_out({"a.ipynb": "one\n"}, tmp_path)
    (tmp_path / "a.ipynb").write_text("mine\n")
    assert hand_out({"a.ipynb": "one\n"}, tmp_path) == []
    for _ in range(2):
        (said,) = hand_out({"a.ipynb": "two\n"}, tmp_path)
        assert said.startswith("a.ipynb: there is a newer version.")
        assert (tmp_path / "a.ipynb").read_text() == "mine\n"
    (tmp_path / "a.ipynb").rename(tmp_path / "b.ipynb")
    assert hand_out({"a.ipynb": "two\n"}, tmp_path) == []
    assert (tmp_path / "a.ipynb").read_text() == "two\n"
    assert (tmp_path / "b.ipynb").read_text() == "mine\n"


def test_a_copy_that_was_not_changed_becomes_the_newer_lesson_and_says_so(tmp_path):
    hand_out({"a.ipynb": "one\n"}, tmp_path)
    (said,) = hand_out({"a.ipynb": "two\n"}, tmp_path)
    assert said.startswith("a.ipynb: replaced by its newer version")
    assert (tmp_path / "a.ipynb").read_text() == "two\n"


def test_a_copy_under_a_lessons_old_number_goes_unless_it_was_changed(tmp_path):
    before = {"04_tpu.ipynb": "one\n", "05_old.ipynb": "two\n", "06_gone.ipynb": "3\n"}
    hand_out(before | {"07_away.ipynb": "4\n"}, tmp_path)
    (tmp_path / "07_away.ipynb").unlink()  # by the learner
    (tmp_path / "05_old.ipynb").write_text("mine\n")
    said = hand_out({"05_tpu.ipynb": "one\n", "06_old.ipynb": "two\n"}, tmp_path)
    assert sorted(line.partition(":")[0] for line in said) == [
        "04_tpu.ipynb",
        "05_old.ipynb",
        "06_gone.ipynb",
    ]
    assert "now 05_tpu.ipynb" in " ".join(said)
    names = {path.name for path in tmp_path.glob("*.ipynb")}
    assert names == {"05_tpu.ipynb", "06_old.ipynb", "05_old.ipynb"}
    assert hand_out({"05_tpu.ipynb": "one\n", "06_old.ipynb": "two\n"}, tmp_path) == []


def test_jupyter_trusts_a_copy_as_it_was_handed_out_and_no_other(tmp_path, monkeypatch):
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path))
    trust([copy_of(LESSONS[0])])
    first, second = (nbformat.reads(copy_of(lesson), as_version=4) for lesson in LESSONS[:2])
    assert NotebookNotary().check_signature(first)
    assert not NotebookNotary().check_signature(second)


@pytest.mark.parametrize(
    "text", ["", '{"a.ipynb": "12', "[1]", "null"], ids=["empty", "torn", "a list", "null"]
)
def test_a_record_that_cannot_be_read_stops_nobody_and_nothing_is_overwritten(tmp_path, text):
    (tmp_path / "a.ipynb").write_text("mine\n")
    (tmp_path / GIVEN).write_text(text)
    assert "newer version" in hand_out({"a.ipynb": "one\n"}, tmp_path)[0]
    assert (tmp_path / "a.ipynb").read_text() == "mine\n"
    assert hand_out({"b.ipynb": "one\n"}, tmp_path) == []


def test_a_learner_is_told_what_changed_and_gets_trusted_copies(tmp_path, monkeypatch, capsys):
    trusted, lessons = [], LESSONS[:2]
    monkeypatch.setattr("tools.copies.LESSONS", lessons)
    monkeypatch.setattr("tools.copies.trust", trusted.extend)
    monkeypatch.setattr("sys.argv", ["copies.py", str(tmp_path)])
    hand_out({lessons[0].name: "older\n"}, tmp_path)
    main()
    assert capsys.readouterr().out.startswith(f"{lessons[0].name}: replaced by its newer version")
    assert trusted == [copy_of(lesson) for lesson in lessons]


def test_a_release_publishes_copies_for_learners_and_for_teachers(tmp_path, monkeypatch):
    monkeypatch.setattr("tools.copies.LESSONS", LESSONS[:2])
    monkeypatch.setattr("sys.argv", ["copies.py", "--publish", str(tmp_path)])
    main()
    for kind in ("notebooks", "solutions"):
        names = sorted(path.name for path in (tmp_path / kind).iterdir())
        assert names == [path.name for path in LESSONS[:2]]
    published = tmp_path / "notebooks" / LESSONS[0].name
    assert published.read_bytes().decode() == copy_of(LESSONS[0])
