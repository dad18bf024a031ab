"""What every lesson has in common. Their outputs are compared by nbval, which runs them as tests of
their own.
"""

import importlib
import json
import re
from pathlib import Path

import nbformat
import pytest
from course_lessons.exercises.progress import NOTEBOOKS

LESSONS = sorted((Path(__file__).resolve().parent.parent / "notebooks").glob("*.ipynb"))
SCRIPTS = LESSONS[0].parent / "course_lessons" / "scripts"
KIBIBYTE = 1024


@pytest.fixture(params=LESSONS, ids=lambda path: path.stem)
def lesson(request):
    return request.param


@pytest.fixture
def notebook(lesson):
    return nbformat.read(lesson, as_version=nbformat.NO_CONVERT)


def code_cells(notebook) -> list:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def texts(notebook) -> list[str]:
    return [cell.source for cell in notebook.cells if cell.cell_type == "markdown"]


def test_the_file_is_valid_with_cell_ids_and_small(lesson, notebook):
    nbformat.validate(notebook)
    assert (notebook.nbformat, notebook.nbformat_minor) >= (4, 5)
    ids = [cell.id for cell in notebook.cells]
    assert len(set(ids)) == len(ids)
    pictures = sum(
        "image/png" in output.get("data", {})
        for cell in code_cells(notebook)
        for output in cell.outputs
    )
    limit = max(200, 31 * pictures + 4)  # text, and 31 a picture
    assert lesson.stat().st_size <= limit * KIBIBYTE


def test_it_was_executed_from_top_to_bottom_in_one_go(notebook):
    counts = [cell.execution_count for cell in code_cells(notebook)]
    assert counts == list(range(1, len(counts) + 1))


def test_a_line_of_a_script_that_an_output_quotes_stands_there_today(notebook):
    for cell in code_cells(notebook):
        shown = "".join(output.get("text", "") for output in cell.outputs)
        for name, number, line in re.findall(r"(train_\w+\.py):(\d+): (.*)", shown):
            written = (SCRIPTS / name).read_text().splitlines()[int(number) - 1]
            assert written.strip() == line.strip(), (cell.id, name, number)


def test_it_holds_no_time_stamps_and_no_widget_state(notebook):
    assert "widgets" not in notebook.metadata
    for cell in notebook.cells:
        assert not {"execution", "ExecuteTime"} & set(cell.metadata), cell.id


def test_a_widget_left_words_that_a_reader_understands(notebook):
    for cell in code_cells(notebook):
        for output in cell.outputs:
            if "application/vnd.jupyter.widget-view+json" in output.get("data", {}):
                assert re.fullmatch(r"\[[^\]()=%]+\]", output.data["text/plain"]), cell.id


def test_no_output_is_an_alarm_that_was_not_meant(notebook):
    for cell in code_cells(notebook):
        meant = "raises-exception" in cell.metadata.get("tags", [])
        for output in cell.outputs:
            assert output.get("name") != "stderr", f"{cell.id} wrote to stderr: {output.text[:200]}"
            assert meant or output.output_type != "error", f"{cell.id} raised {output.get('ename')}"
        if meant:
            assert any(output.output_type == "error" for output in cell.outputs), (
                f"{cell.id} did not raise"
            )


def test_no_two_prices_in_an_output_are_taken_for_a_formula(notebook):
    """MathJax sets what stands between two dollars in italics, without the dollars, except in
    elements of a class that says otherwise: mathjax_ignore in JupyterLab 4.6, as a look showed.
    """
    for cell in code_cells(notebook):
        for output in cell.outputs:
            for kind in ("text/html", "text/markdown"):
                shown = output.get("data", {}).get(kind, "")
                if shown.startswith('<div class="mathjax_ignore'):
                    continue
                for part in re.split(r"</?(?:td|th|p|li|div)\b", shown):
                    assert part.count("$") < 2, f"{cell.id}: {part[:80]}"


def test_no_two_prices_in_a_paragraph_are_taken_for_a_formula(notebook):
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            text = re.sub(r"```.*?```|`[^`\n]*`|\$\$.*?\$\$", "", cell.source, flags=re.DOTALL)
            for part in re.split(r"\n\s*\n|\n[-|]", text):
                assert part.count("$") < 2, f"{cell.id}: {part[:80]}"


def test_no_output_shows_where_the_machine_that_wrote_it_keeps_its_files(notebook):
    for cell in code_cells(notebook):
        found = re.search(
            r"/(home|root|Users|work)/[\w./-]+|site-packages", json.dumps(cell.outputs)
        )
        assert not found, f"{cell.id} shows {found[0]}"


def test_the_opening_says_what_the_lesson_is_for_and_what_it_needs(lesson, notebook):
    opening = notebook.cells[0]
    assert opening.cell_type == "markdown"
    assert re.match(rf"# {int(lesson.name[:2])}\. ", opening.source)
    for part in ("**The question:**", "**You need**", "**Time:**", "**Hardware:**", "CPU"):
        assert part in opening.source, part
    goals = re.findall(r"^- ", opening.source, re.MULTILINE)
    assert 1 <= len(goals) <= 3


def test_the_first_output_is_a_picture_that_the_lesson_draws_once(notebook):
    """GitHub and Colab show outputs, but no attachment of a text."""
    assert not any("attachments" in cell for cell in notebook.cells)
    pictures = []
    for cell in code_cells(notebook):
        for output in cell.outputs:
            if "image/png" in output.get("data", {}):
                pictures.append((cell.id, output.data["image/png"].strip(), output.metadata))
    place, first, metadata = pictures[0]
    assert place.endswith("-setup")
    assert [data for _, data, _ in pictures].count(first) == 1
    assert len(metadata["image/png"]["alt"]) <= 160


def test_the_closing_has_three_takeaways_a_limit_a_way_on_and_sources(notebook):
    closing = texts(notebook)[-1]
    assert len(re.findall(r"^[1-9]\. ", closing, re.MULTILINE)) == 3
    for part in ("limit", "](", "**Sources.**"):
        assert part in closing, part


def test_code_cells_are_short_enough_to_project(notebook):
    _, _, *others = code_cells(notebook)  # the first is the set-up, folded; the second imports
    for cell in others:
        if cell.source.startswith("%%writefile"):
            continue  # a script to take home is whole, in one cell
        if cell.metadata.get("jupyter", {}).get("source_hidden"):
            continue  # folded: its result is shown, not its code
        lines = [
            line for line in cell.source.splitlines() if line.strip() and not line.startswith("%%")
        ]
        assert len(lines) <= 15, f"{cell.id} has {len(lines)} lines"
        assert max(map(len, lines), default=0) <= 120, f"{cell.id} is too wide"


def test_what_a_lesson_imports_of_the_course_is_there(notebook):
    for cell in code_cells(notebook):
        lines = [line for line in cell.source.splitlines() if not line.lstrip().startswith("%")]
        pattern = r"^\s*from (course_\S+) import (?:\(([^)]*)\)|(.*))"
        for module, several, few in re.findall(pattern, "\n".join(lines), re.MULTILINE):
            for name in re.findall(r"(\w+)(?: as \w+)?", several or few.partition("#")[0]):
                try:
                    home = importlib.import_module(module)
                except ModuleNotFoundError as error:
                    if error.name != "torch_xla":  # it is left out where it does not load
                        raise
                    pytest.skip("torch_xla is not installed here")
                if not hasattr(home, name):
                    importlib.import_module(f"{module}.{name}")


def test_no_cell_assigns_the_output_of_a_command(notebook):
    """IPython 7.34, which Colab pins, leaves `= !` and `= %` as they are on Python 3.12 and later:
    a SyntaxError.
    """
    for cell in code_cells(notebook):
        assert not re.search(r"^\s*[\w, ]+=\s*[!%]", cell.source, re.MULTILINE), cell.id


def test_a_folder_with_a_space_in_its_name_is_one_word_of_a_command(notebook):
    for cell in code_cells(notebook):
        assert not re.search(r'(?<!"){FOLDER}', cell.source), cell.id


def test_torchrun_takes_a_free_port_wherever_one_machine_is_enough(notebook):
    for cell in notebook.cells:
        for command in re.findall(r"torchrun -.*", cell.source):
            assert re.search("--standalone|--nnodes", command), f"{cell.id}: {command}"


def test_a_script_in_a_lesson_is_the_one_that_is_tested(lesson, notebook):
    for cell in code_cells(notebook):
        found = re.match(r"%%writefile (train_\w+\.py)\n", cell.source)
        script = lesson.parent / "course_lessons/scripts" / found[1] if found else None
        if script and script.exists():
            assert cell.source[found.end() :].strip() == script.read_text().strip(), cell.id


def test_links_to_other_lessons_and_files_lead_somewhere(lesson, notebook):
    planned = set(NOTEBOOKS.values())
    for text in texts(notebook):
        for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", text):
            assert (lesson.parent / target).exists() or Path(target).stem in planned, target


def test_the_routes_of_the_readme_name_sections_that_are_there():
    folder = LESSONS[0].parent
    lines = (folder.parent / "README.md").read_text().splitlines()
    routes = [line for line in lines if re.search(r" minutes\).* \|$", line)]
    assert len(routes) == 5
    for route in routes:
        first, *parts = re.split(r"\[[Ll]esson \d\]\(notebooks/", route)
        assert parts and " minutes" not in first
        for part in parts:
            cells = nbformat.read(folder / part.partition(")")[0], nbformat.NO_CONVERT).cells
            text = "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
            headings = re.findall(r"^##+ (?:\d\. )?(.+)$", text, re.MULTILINE)
            named = re.findall(r"(?:to the end of|section|exercise) \*(.+?)\* \(\d+ minutes", part)
            assert named and set(named) <= set(headings), part


def test_the_teachers_guide_names_cells_and_sections_that_are_there():
    guide = (LESSONS[0].parent / "TEACHING.md").read_text(encoding="utf-8")
    cells = [cell for path in LESSONS for cell in nbformat.read(path, as_version=4).cells]
    ids = {cell.id for cell in cells}
    named = re.findall(r"`(\d\d-[\w-]+)`", guide)
    assert len(named) > 100 and not set(named) - ids
    headings = re.findall(r"(?m)^#+ (.*)", "\n".join(cell.source for cell in cells))
    plain = [re.sub(r"[`*]", "", heading) for heading in headings]
    sections = re.findall(r"\| \*([^*|]+)\*(?= \(`)", guide) + re.findall(
        r"(?:before|At|end of) \*([^*]+)\*", guide
    )
    absent = [name for name in sections if not any(name in heading for heading in plain)]
    assert len(sections) > 60 and not absent
