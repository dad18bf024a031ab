"""How `make slides` turns lessons into slides: each becomes one file, which needs no network."""

import re
from pathlib import Path


def without_badges(notebook, resources):
    """Take the launch line out: its badges come from a network, and nobody clicks on them in a lecture hall."""
    opening = notebook.cells[0]
    opening.source = re.sub(r"^Launch: .*\n\n?", "", opening.source, flags=re.MULTILINE)
    return notebook, resources


here = Path(__file__).parent
c = get_config()  # noqa: F821  nbconvert defines it
c.NbConvertApp.export_format = "slides"
c.SlidesExporter.template_name = "offline"
c.TemplateExporter.extra_template_basedirs = [str(here)]
c.FilesWriter.build_directory = str(here)
c.SlidesExporter.preprocessors = [without_badges]
