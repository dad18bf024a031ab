"""How `make slides` turns lessons into slides: each becomes one file, which needs no network."""

import re
import sys
from importlib.util import find_spec
from pathlib import Path

import nbformat
from docutils.utils.math.latex2mathml import tex2mathml

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from tools.predictions import settling_cells
from tools.setup_cell import read_address, without_links_to_files

MOST_LINES = 26  # of code on a slide
ENOUGH = 350  # letters of a text for a slide of its own
# Below the table of an estimate: what was asked, and what else has to be known.
SMALL_PRINT = re.compile(
    r"(<p>The job: [^<]*</p>)(<p>[^<]*</p>)(<details><summary>[^<]*</summary>)"
)
# What gloo's ranks say on connecting, two at once and into each other's lines.
GLOO = re.compile(r"(?m)^.*Expected number of connected peer ranks is.*\n?")


def with_the_opening_picture_alone(notebook, resources):
    """Keep of the set-up cell nothing but the picture that it draws: it gets a slide of its own."""
    for cell in notebook.cells:
        if cell.id.endswith("-setup"):
            cell.source = ""
            cell.outputs = [each for each in cell.outputs if "image/png" in each.get("data", {})]
    return notebook, resources


def without_what_a_class_need_not_see(notebook, resources):
    """Leave out progress, that a file was written, and the boxes of untried exercises, and open
    each answer, which no key of the keyboard does: the prediction and the output came before it.
    The small print of an estimate, which nobody reads in a hall, goes into its details.
    """
    for cell in notebook.cells:
        if cell.source.strip().endswith("progress()"):
            cell.metadata.slideshow = {"slide_type": "skip"}
        written = cell.source.startswith("%%writefile")
        if written or "exercise" in cell.metadata.get("tags", []):
            cell.outputs = []
        for output in cell.get("outputs", []):
            if "text" in output:
                output.text = GLOO.sub("", output.text)
            if "text/html" in (data := output.get("data", {})):
                data["text/html"] = SMALL_PRINT.sub(r"\1\3\2", data["text/html"])
        if cell.cell_type == "markdown":
            cell.source = re.sub(r"(?m)^<details>", "<details open>", cell.source)
    return notebook, resources


def with_questions_before_their_answers(notebook, resources):
    """Mark the cells that settle a prediction: with the prediction one sees their code at most, and
    a picture, which is shown without its code, has a slide of its own.
    """
    settling = settling_cells(notebook.cells)
    before = None
    for cell in notebook.cells:
        shown = cell.metadata.get("slideshow", {}).get("slide_type", "-")
        if cell.cell_type == "markdown" and before in settling and shown == "-":
            cell.metadata.slideshow = {"slide_type": "fragment"}
        elif cell in settling and shown != "skip":
            cell.metadata.tags = [*cell.metadata.get("tags", []), "settles"]
            if shown in ("-", "fragment"):
                alone = any(kind in str(cell.outputs) for kind in ("image/png", "course-diff"))
                cell.metadata.slideshow = {"slide_type": "subslide" if alone else "-"}
        before = cell
    return notebook, resources


def with_sections_on_slides_of_their_own(notebook, resources):
    """Cut a text where a section begins in the midst of it, so that a slide holds one section. A
    part of a section begins a slide only if the text before it is long enough for its own.
    """
    cells = []
    for cell in notebook.cells:
        cells.append(cell)
        if cell.cell_type != "markdown":
            continue
        cell.source, *sections = re.split(r"\n+(?=###? )", cell.source)
        for section in sections:
            part = section.startswith("### ")
            if part and len(cells[-1].source) < ENOUGH:
                cells[-1].source += f"\n\n{section}"
                continue
            shown = {"slideshow": {"slide_type": "subslide" if part else "slide"}}
            cells.append(nbformat.v4.new_markdown_cell(section, metadata=shown))
    notebook.cells = cells
    return notebook, resources


def with_long_code_on_several_slides(notebook, resources):
    """Cut code that is longer than a slide at the last empty line that fits; its output stays with
    the last part.
    """
    cells = []
    for cell in notebook.cells:
        lines = cell.source.split("\n")
        skipped = cell.metadata.get("slideshow", {}).get("slide_type") == "skip"
        if cell.cell_type != "code" or skipped:
            cells.append(cell)
            continue
        while len(lines) > MOST_LINES and "" in lines[1:MOST_LINES]:
            cut = MOST_LINES - lines[MOST_LINES - 1 : 0 : -1].index("") - 1
            part = nbformat.v4.new_code_cell("\n".join(lines[:cut]).rstrip())
            part.metadata.slideshow = {"slide_type": "subslide"}
            cells.append(part)
            lines = lines[cut + 1 :]
        cell.source = "\n".join(lines).strip("\n")
        cells.append(cell)
    notebook.cells = cells
    return notebook, resources


def with_links_to_the_book(notebook, resources):
    """Let links between lessons lead to the book, if it has an address, and take badges out."""
    address = read_address()
    for cell in notebook.cells:
        if cell.cell_type != "markdown":
            continue
        cell.source = re.sub(r"(?m)^\[!\[Open this lesson in .*\n+", "", cell.source)
        cell.source = without_links_to_files(cell.source, address)
    return notebook, resources


def with_formulas(notebook, resources):
    """Write each formula as MathML, which browsers draw themselves: slides have no network to load
    MathJax from.
    """
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = re.sub(
                r"(?m)^\$\$(.+)\$\$$", lambda found: as_html(found[1]), cell.source
            )
    return notebook, resources


def as_html(formula: str) -> str:
    """Return a formula as a paragraph of HTML in one line, of which Markdown changes nothing."""
    lines = tex2mathml(formula, as_block=True).splitlines()
    return f"<div>{''.join(line.strip() for line in lines)}</div>"


here = Path(__file__).parent
c = get_config()  # noqa: F821  nbconvert defines it
c.NbConvertApp.export_format = "slides"
c.SlidesExporter.template_name = "offline"
c.TemplateExporter.extra_template_basedirs = [str(here)]
# reveal.js comes with this package; the file of a lesson's slides then holds it.
reveal = Path(find_spec("sphinx_revealjs").origin).parent / "_static" / "revealjs"
c.TemplateExporter.extra_template_paths = [str(reveal)]
c.FilesWriter.build_directory = str(here)
c.SlidesExporter.preprocessors = [
    with_the_opening_picture_alone,
    without_what_a_class_need_not_see,
    with_sections_on_slides_of_their_own,
    with_questions_before_their_answers,
    with_long_code_on_several_slides,
    with_links_to_the_book,
    with_formulas,
]
