"""How `make slides` turns lessons into slides: each becomes one file, which needs no network."""

from pathlib import Path

here = Path(__file__).parent
c = get_config()  # noqa: F821  nbconvert defines it
c.NbConvertApp.export_format = "slides"
c.SlidesExporter.template_name = "offline"
c.TemplateExporter.extra_template_basedirs = [str(here)]
c.FilesWriter.build_directory = str(here)
