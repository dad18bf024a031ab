"""The course can be read without seeing its pictures, without colours, and in a dark theme."""

import itertools
import re
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path

import nbformat
import pytest
from course_lessons.beyond_the_notebook.pictures import draw_starts
from course_lessons.device_speed.classroom import ClassResult
from course_lessons.gpu.pictures import draw_memories
from course_lessons.multi_gpu.pictures import draw_collectives, draw_ddp, draw_published_scaling
from course_lessons.tpu.pictures import draw_cache
from matplotlib.colors import to_hex
from matplotlib.text import Text

from course_tools.timeline.drawing import draw_runs
from tests.course_tools.compare.test_charts import CPU_ROWS, GPU_ROWS, comparison, rows
from tests.course_tools.timeline.test_drawing import LANES

ROOT = Path(__file__).resolve().parent.parent
LESSONS = sorted((ROOT / "notebooks").glob("*.ipynb"))
DOCUMENTS = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "notebooks").glob("*.md"))]
DOCUMENTS += sorted((ROOT / "tools" / "book" / "pages").glob("*.md"))
ONE_THREAD = rows("cpu, 1 thread", "cpu", 500, 600, 700)
XLA_ROWS = rows("xla:0", "xla", 5, 50, 500)
DRAWN = {
    "memories": draw_memories,
    "speeds": lambda: comparison(CPU_ROWS, ONE_THREAD, GPU_ROWS, XLA_ROWS).plot(),
    "class": lambda: ClassResult(
        {"a": comparison(CPU_ROWS, ONE_THREAD, GPU_ROWS), "b": comparison(CPU_ROWS, XLA_ROWS)}, {}
    ).plot(),
    "published scaling": draw_published_scaling,
    "ddp": draw_ddp,
    "collectives": draw_collectives,
    "starts": draw_starts,
    "timeline": lambda: draw_runs({"a run": LANES}, "A title"),
    "cache": lambda: draw_cache([5, 7, 5, 9, 7, 5], [1, 1, 0, 1, 0, 0]),
}


class Elements(HTMLParser):
    """The start tags of a piece of HTML, with their attributes, in order."""

    def __init__(self, text: str):
        super().__init__()
        self.found: list[tuple[str, dict]] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))


def without_code(text: str) -> str:
    return re.sub(r"```.*?```|`[^`\n]*`", "", text, flags=re.DOTALL)


def written() -> list[tuple[str, str]]:
    """Every piece of Markdown that a reader sees, with where it stands."""
    pieces = [(path.name, path.read_text()) for path in DOCUMENTS]
    for path in LESSONS:
        for cell in nbformat.read(path, as_version=4).cells:
            if cell.cell_type == "markdown":
                pieces.append((cell.id, cell.source))
            for output in cell.get("outputs", []):
                if "text/markdown" in output.get("data", {}):
                    pieces.append((cell.id, output.data["text/markdown"]))
    return pieces


def shown_as_html() -> list[tuple[str, str]]:
    """Every output that is HTML, and what HTML the Markdown holds."""
    found = [(name, without_code(text)) for name, text in written()]
    for path in LESSONS:
        for cell in nbformat.read(path, as_version=4).cells:
            for output in cell.get("outputs", []):
                if "text/html" in output.get("data", {}):
                    found.append((cell.id, output.data["text/html"]))
    return found


def test_every_picture_in_a_text_has_words_in_its_place():
    for place, text in written():
        for words in re.findall(r"!\[([^\]]*)\]", without_code(text)):
            assert len(words.split()) >= 4, f"{place}: {words!r}"
    for place, text in shown_as_html():
        for tag, attributes in Elements(text).found:
            assert tag != "img" or len((attributes.get("alt") or "").split()) >= 4, place


def test_every_picture_in_an_output_has_words_in_its_place():
    pictures = 0
    for path in LESSONS:
        for cell in nbformat.read(path, as_version=4).cells:
            for output in cell.get("outputs", []):
                for kind in {"image/png", "image/jpeg", "image/svg+xml"} & set(
                    output.get("data", {})
                ):
                    pictures += 1
                    assert len(output.metadata.get(kind, {}).get("alt", "").split()) >= 4, cell.id
    assert pictures > 15


@pytest.mark.parametrize("path", [*DOCUMENTS, *LESSONS], ids=lambda path: path.name)
def test_the_headings_of_a_text_go_down_one_step_at_a_time(path):
    text = path.read_text()
    if path in LESSONS:
        cells = nbformat.reads(text, as_version=4).cells
        text = "\n\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    levels = [len(marks) for marks in re.findall(r"^(#+) ", without_code(text), re.MULTILINE)]
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))


def test_no_output_adds_a_heading_of_its_own():
    for place, text in shown_as_html():
        assert not {"h1", "h2", "h3", "h4"} & {tag for tag, _ in Elements(text).found}, place


def test_every_table_has_headers():
    for place, text in shown_as_html():
        for table in re.findall(r"<table.*?</table>", text, re.DOTALL):
            assert "<th" in table, f"{place}: {table[:120]}"
            first = re.search(r"<tr.*?</tr>", table, re.DOTALL)[0]
            assert "<th" in first, f"{place}: the first line has no header: {first[:120]}"


def luminance(colour: str) -> float:
    parts = [int(to_hex(colour)[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    ]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one: str, other: str) -> float:
    """The contrast of two colours by WCAG 2: 21 for black on white, 1 for no difference."""
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def test_text_in_outputs_is_as_dark_as_the_theme_makes_it_or_has_contrast():
    for place, text in shown_as_html():
        for _, attributes in Elements(text).found:
            style = dict(
                part.split(":", 1)
                for part in (attributes.get("style") or "").split(";")
                if ":" in part
            )
            style = {name.strip(): value.strip() for name, value in style.items()}
            colour, ground = style.get("color", "inherit"), style.get("background", "transparent")
            assert (colour == "inherit") == (ground in ("inherit", "transparent")), (
                f"{place}: {style} in a dark theme"
            )
            assert colour == "inherit" or contrast(colour, ground) >= 4.5, f"{place}: {style}"


def look(line) -> tuple:
    return line.get_marker(), line.get_linestyle()


@pytest.mark.long
@pytest.mark.parametrize("name", DRAWN)
def test_text_in_a_picture_has_contrast_and_no_two_lines_differ_by_colour_alone(name, drawn):
    DRAWN[name]()
    (*_, axes) = drawn
    texts = [text for text in axes.findobj(Text) if text.get_text().strip()]
    faint = [each.get_text() for each in texts if contrast(each.get_color(), "white") < 3]
    assert not faint  # as large text needs
    names = Counter(to_hex(text.get_color()) for text in texts)
    lines = Counter(to_hex(line.get_color()) for line in axes.lines)
    for one, other in itertools.combinations(axes.lines, 2):
        colours = {to_hex(one.get_color()), to_hex(other.get_color())}
        each_named = "#000000" not in colours and all(
            names[colour] >= lines[colour] for colour in colours
        )
        assert len(colours) == 1 or look(one) != look(other) or each_named
    ticks = [text.get_text() for text in (*axes.get_xticklabels(), *axes.get_yticklabels())]
    for one, other in itertools.combinations(axes.containers, 2):
        if one[0].get_facecolor() != other[0].get_facecolor():
            assert one[0].get_hatch() != other[0].get_hatch() or len(set(ticks)) >= len(
                axes.containers
            )
