"""How Sphinx makes the book. tools/book/build.py writes what it reads, and copies this file
there.
"""

import re

from docutils import nodes
from docutils.utils.math import latex2mathml

project = "How do I use a GPU (a TPU), and is it worth it?"
html_title = "CPU, GPU and TPU for PyTorch"
author = "the authors of the course"
language = "en"
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton"]
exclude_patterns = ["copies", "_templates"]
default_role = "code"  # docstrings write `name`

nb_execution_mode = "off"
nb_ipywidgets_js = {}  # without a kernel a widget cannot live: what it left as text is shown
nb_mime_priority_overrides = [("html", "application/vnd.jupyter.widget-view+json", None)]
nb_merge_streams = True
suppress_warnings = ["misc.highlighting_failure"]  # a cell may write a file that is not Python
myst_enable_extensions = ["deflist", "dollarmath", "attrs_inline"]
myst_heading_anchors = 4

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
maximum_signature_line_length = 88
copybutton_exclude = ".linenos, .gp, .go"
napoleon_use_ivar = True  # autodoc shows the attributes themselves

html_theme = "pydata_sphinx_theme"
html_static_path = ["_static"]
html_css_files = ["course.css"]
html_js_files = ["excerpts.js"]
html_copy_source = False
html_show_sourcelink = False
html_math_renderer = "mathml"
html_theme_options = {
    "logo": {"text": "CPU · GPU · TPU"},
    "navbar_align": "left",
    "navbar_center": [],
    "navbar_persistent": ["search-button"],
    "secondary_sidebar_items": ["page-toc"],
    "article_header_start": [],
    "footer_start": ["copyright"],
    "footer_end": [],
    "show_prev_next": True,
    "search_as_you_type": False,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_context = {"default_mode": "auto"}
html_sidebars = {"**": ["contents.html"]}
templates_path = ["_templates"]
copyright = "the authors of the course. Text and pictures: CC BY 4.0. Code: Apache-2.0"


def inline_math(translator, node: nodes.math) -> None:
    """Write a formula as MathML, which browsers draw themselves: nothing is loaded."""
    translator.body.append(
        latex2mathml.tex2mathml(node.astext(), as_block=isinstance(node, nodes.math_block))
    )
    raise nodes.SkipNode


def code_in_docstring(app, what, name, thing, options, lines: list[str]) -> None:
    """Mark what is indented after an empty line as code; unmarked, Sphinx makes a quotation of it,
    in one line and with curly quotes.
    """
    marked: list[str] = []
    for line in lines:
        after_text = len(marked) > 1 and not marked[-1] and re.match(r"\S", marked[-2])
        if line.startswith("    ") and after_text and not marked[-2].endswith("::"):
            marked += ["::", ""]
        marked.append(line)
    lines[:] = marked


def with_indented_lines(app, page: str, template: str, context: dict, doctree) -> None:
    """Make an element of each line of code, with how far it is indented: what a telephone has no
    room for goes on below the line's own beginning (course.css).
    """

    def lines(block: re.Match) -> str:
        return "".join(as_element(line) for line in block[0].splitlines(keepends=True))

    def as_element(line: str) -> str:
        tags, spaces, rest = re.fullmatch(r"(?s)((?:<[^>]+>)*)( *)(.*)", line).groups()
        inside = f'{tags}<span class="indent">{spaces}</span>{rest}' if spaces else line
        return f'<span class="line" style="--indent: {len(spaces)}">{inside}</span>'

    code = re.compile(r'(?s)(?<=<div class="highlight"><pre>).*?(?=</pre>)')
    context["body"] = code.sub(lines, context.get("body", ""))


def setup(app) -> None:
    """Add the way in which formulas are written, code in docstrings, and lines of code."""
    app.connect("html-page-context", with_indented_lines)
    app.connect("autodoc-process-docstring", code_in_docstring, priority=400)  # before napoleon
    app.add_html_math_renderer("mathml", (inline_math, None), (inline_math, None))
