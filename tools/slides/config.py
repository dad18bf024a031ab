"""How `make slides` turns lessons into slides: each becomes one file, which needs no network."""

import re
from pathlib import Path

try:  # comes with the book, which needs Python 3.11: without it a formula stays as it was written
    from docutils.utils.math.latex2mathml import tex2mathml
except ImportError:
    tex2mathml = None


def without_badges(notebook, resources):
    """Take the launch line out: its badges come from a network, and nobody clicks on them in a
    lecture hall.
    """
    opening = notebook.cells[0]
    opening.source = re.sub(r"^Launch: .*\n\n?", "", opening.source, flags=re.MULTILINE)
    return notebook, resources


def with_formulas(notebook, resources):
    """Write each formula as MathML, which browsers draw themselves: slides have no network to load
    MathJax from.
    """
    for cell in notebook.cells:
        if tex2mathml and cell.cell_type == "markdown":
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
c.FilesWriter.build_directory = str(here)
c.SlidesExporter.preprocessors = [without_badges, with_formulas]
