"""Build the course as a book of static pages: `python tools/book/build.py`, which `make book` does.

The pages need no network. Lessons keep their stored outputs, since nothing is executed here. Each
word of the glossary is linked where a lesson first uses it. The reference holds what the lessons
import, by its docstrings.
"""

import argparse
import importlib
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import nbformat
from nbformat import NotebookNode

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(ROOT))
from tools.book.old_code_tables import old_code_page  # noqa: E402
from tools.copies import LESSONS  # noqa: E402
from tools.page.build import page as worth_it_page  # noqa: E402
from tools.predictions import settling_cells  # noqa: E402
from tools.setup_cell import launch_links, read_address  # noqa: E402
from tools.standalone import build_wheel, standalone  # noqa: E402

NAMES = ("compare", "doctor", "estimate", "old_code", "rehearsal", "timeline")
TOOLS = ("course_utils.launch", *(f"course_tools.{name}" for name in NAMES))
IMPORT = re.compile(r"from (course_(?:utils|tools)(?:\.\w+)*) import (\([^)]*\)|[^\n]*)")
DOCUMENTS = {
    "README.md": "index.md",
    "notebooks/TEACHING.md": "teaching.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changes.md",
    "CODE_OF_CONDUCT.md": "conduct.md",
    "SECURITY.md": "security.md",
}
# a picture of the README: where it leads, its file, and what it shows
PICTURE = re.compile(
    r'<a href="([^"]*)"><picture>.*?<img [^>]*src="([^"]*)" alt="([^"]*)"[^>]*></picture></a>'
)
# of the README: how to get the course, and the list of lessons, which in the book comes first
TO_RUN_IT = re.compile(
    r"(?s)(^Get this repository .*?)(^## The lessons\n.*?)(?=^## What is in )", re.M
)
WIDGET = "application/vnd.jupyter.widget-view+json"
# what one presses to see an output that a prediction is about
PREDICTED = {
    "code_prompt_show": "Show the output, after your prediction",
    "code_prompt_hide": "Hide the output",
}
NO_KERNEL = "*Here the notebook shows a panel to play with: it needs a running kernel.*"
NOT_PROSE = re.compile(
    r"```.*?```|\$\$.*?\$\$|`[^`]*`|!?\[[^\]]*\]\([^)]*\)|<summary>.*?</summary>|<[^>]+>"
    r"|^#[^\n]*|https?:\S+|\{[^}]*\}"
    r"|\bWindows\b",  # the system, not the window of a series
    re.S | re.M,
)


def words(glossary: str) -> dict[str, str]:
    """Return what to look for in a lesson, a word or another form of it, with the word that the
    glossary explains.
    """
    entries = re.findall(
        r"^((?:\S.*\n)+)  \S", glossary.partition("```{glossary}\n")[2], re.MULTILINE
    )
    return {form: entry.splitlines()[0] for entry in entries for form in entry.splitlines()}


def with_links(text: str, left: dict[str, str]) -> str:
    """Return Markdown in which each word of the glossary is linked once; those words are taken out
    of `left`.
    """
    for form in sorted(left, key=len, reverse=True):
        if form not in left:
            continue  # another form of the word was linked
        kept = [match.span() for match in NOT_PROSE.finditer(text)]
        flags = 0 if form.isupper() or form[1:] != form[1:].lower() else re.IGNORECASE
        for found in re.finditer(rf"(?<![\w-]){re.escape(form)}s?(?![\w-])", text, flags):
            if any(start < found.end() and found.start() < end for start, end in kept):
                continue
            term = left[form]
            text = f"{text[: found.start()]}{{term}}`{found[0]} <{term}>`{text[found.end() :]}"
            for other in [other for other in left if left[other] == term]:
                del left[other]
            break
    return text


def slug(heading: str) -> str:
    """Return the anchor that the book gives a heading; Jupyter writes it with capitals and
    marks.
    """
    return re.sub(r"[^\w-]", "", heading.lower())


def open_line(lesson: Path) -> str:
    """Return the line that says where to open a lesson, and where to report a mistake in it."""
    ways = [
        f"{{download}}`Download this lesson <copies/{lesson.name}>`, with the course inside",
        "[How to run it](elsewhere.md)",
    ]
    links = launch_links(read_address(), lesson.name).items()
    ways += [f"[Open it in {host}]({link})" for host, link in links]
    if repository := read_address().repository:
        report = f"https://github.com/{repository}/issues/new?template=lesson.yml"
        ways.append(f"[Report a mistake]({report})")
    return " · ".join(ways)


def raise_the_opening_picture(notebook: NotebookNode) -> None:
    """Keep of the set-up cell its picture alone, and put that right under the lesson's question."""
    opening = notebook.cells[0]
    setup = next((cell for cell in notebook.cells if cell.id.endswith("-setup")), None)
    if setup is None:
        return
    setup.source = "# not shown, but MyST leaves out a cell without a source"
    setup.outputs = [output for output in setup.outputs if "image/png" in output.get("data", {})]
    question, gap, rest = opening.source.partition("\n\nAfter this lesson")
    opening.source = question
    notebook.cells.remove(setup)
    aims = nbformat.v4.new_markdown_cell(f"{gap.strip()}{rest}", metadata=opening.metadata)
    notebook.cells[1:1] = [setup, aims]


def page_of(notebook: NotebookNode, lesson: Path, terms: dict[str, str]) -> NotebookNode:
    """Return a lesson as the book shows it: without checks, with links and words for pictures."""
    left = dict(terms)
    # Neither what checks the lesson nor how it is set up is for a reader of pages.
    notebook.cells = [
        cell for cell in notebook.cells if "check" not in cell.metadata.get("tags", [])
    ]
    raise_the_opening_picture(notebook)
    settling = settling_cells(notebook.cells)
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = re.sub(r"(?m)^\[!\[Open this lesson in .*\n+", "", cell.source)
            cell.source = re.sub(
                r"\]\(#([^)]+)\)", lambda match: f"](#{slug(match[1])})", cell.source
            )
            cell.source = re.sub(r"\]\(\.\./tools/book/pages/", "](", cell.source)
            link = '<a href="worth-it.html">worth-it.html</a>'
            cell.source = cell.source.replace("`worth-it.html`", link)
            cell.source = with_links(cell.source, left)
            continue
        folded = cell.metadata.get("jupyter", {}).get("source_hidden", False)
        if folded:
            of_picture = cell.id.endswith("-setup")
            cell.metadata.tags = ["remove-input" if of_picture else "hide-input"]
        cell.metadata.mystnb = {}
        if cell in settling and cell.outputs:
            cell.metadata.tags = [*cell.metadata.get("tags", []), "hide-output"]
            cell.metadata.mystnb = dict(PREDICTED)
        for output in cell.outputs:
            if alt := output.get("metadata", {}).get("image/png", {}).get("alt"):
                cell.metadata.mystnb["image"] = {"alt": alt}
            if WIDGET in output.get("data", {}):
                output.data = {"text/markdown": NO_KERNEL}
    title, _, rest = notebook.cells[0].source.partition("\n")
    notebook.cells[0].source = f"{title}\n\n{open_line(lesson)}\n{rest}"
    return notebook


def write_lessons(source: Path, terms: dict[str, str]) -> None:
    """Write every lesson, as a page and as one file to download."""
    (source / "copies").mkdir()
    files = build_wheel()
    for lesson in LESSONS:
        page = page_of(nbformat.read(lesson, as_version=4), lesson, terms)
        nbformat.write(page, source / lesson.name)
        (source / "copies" / lesson.name).write_text(standalone(lesson, files), encoding="utf-8")


def imported_names() -> dict[str, set[str]]:
    """Return what the lessons and their package import from course_utils, by module."""
    texts = [path.read_text(encoding="utf-8") for path in (ROOT / "notebooks").rglob("*.py")]
    for lesson in LESSONS:
        cells = nbformat.read(lesson, as_version=4).cells
        texts += [cell.source for cell in cells if cell.cell_type == "code"]
    found: dict[str, set[str]] = {}
    for module, names in IMPORT.findall("\n".join(texts)):
        bare = re.sub(r"#.*|[()]| as \w+", "", names)
        found.setdefault(module, set()).update(re.findall(r"\w+", bare))
    return found


def public_names(tool: str) -> dict[str, set[str]]:
    """Return what readers import from a tool, by the module that each name is imported from."""
    found: dict[str, set[str]] = {}
    for module, names in imported_names().items():
        if module != tool and not module.startswith(f"{tool}."):
            continue
        for name in names:
            thing = getattr(importlib.import_module(module), name, None)
            if callable(thing) and thing.__module__.startswith("course_"):
                found.setdefault(thing.__module__, set()).add(name)
    return found


def write_reference(source: Path) -> None:
    """Write a page for the flat files of the package, and one for each of its tools."""
    flat = sorted(path.stem for path in (ROOT / "course_utils").glob("[a-z]*.py"))
    pages = {"helpers": {f"course_utils.{name}": set() for name in flat}}
    pages |= {tool.partition(".")[2]: public_names(tool) for tool in TOOLS}
    titles = {tool.partition(".")[2]: tool for tool in TOOLS}
    folder = source / "reference"
    folder.mkdir()
    for page, modules in pages.items():
        title = titles.get(page, "The helper package")
        parts = [f"# {title}\n"]
        if page != "helpers" and title not in modules:
            parts.append(f"```{{eval-rst}}\n.. automodule:: {title}\n   :no-members:\n```\n")
        for module, names in sorted(modules.items()):
            members = f"   :members: {', '.join(sorted(names))}".rstrip()
            lines = [f"## {module}\n", "```{eval-rst}", f".. automodule:: {module}", members]
            parts.append("\n".join([*lines, "```\n"]))
        (folder / f"{page}.md").write_text("\n".join(parts), encoding="utf-8")


def contents(caption: str, pages: list[str]) -> str:
    """Return a part of the table of contents, as MyST writes it."""
    return "\n".join(
        ["", "```{toctree}", ":hidden:", f":caption: {caption}", "", *pages, "```", ""]
    )


def write_documents(source: Path) -> None:
    """Write the repository's documents into the book, with links that lead to its pages."""
    for path, page in DOCUMENTS.items():
        text = (ROOT / path).read_text(encoding="utf-8")
        for other, its_page in DOCUMENTS.items():
            text = re.sub(
                rf"\]\((?:\.\./|notebooks/)?{Path(other).name}(#[^)]*)?\)",
                rf"]({its_page}\1)",
                text,
            )
        text = PICTURE.sub(r"[![\3](\2)](\1)", text)
        text = re.sub(r"\]\((?:\.github|notebooks|tools/book/pages)/([\w-]+\.\w+)", r"](\1", text)
        # badges come from a network
        text = re.sub(r"\[!\[([^\]]*)\]\(https?:[^)]*\)\]", r"[\1]", text)
        # files beside the book
        text = re.sub(r"\[([^\]]+)\]\((?:LICENSE|CITATION|tools/slides/)[^)]*\)", r"\1", text)
        if page == "index.md":
            text = TO_RUN_IT.sub(r"\2## Run it yourself\n\n\1", text)
            asked = "`make page` writes the page in the picture: one file, no server"
            text = text.replace(asked, '<a href="worth-it.html">the page in the picture</a>')
            text += contents("Lessons", [lesson.stem for lesson in LESSONS])
            pages = sorted(each.stem for each in (HERE / "pages").glob("*.md"))
            text += contents(
                "More", [*pages, "teaching", "contributing", "changes", "conduct", "security"]
            )
            names = ["helpers", *(tool.partition(".")[2] for tool in TOOLS)]
            reference = [f"reference/{name}" for name in names]
            text += contents("Reference", reference)
        (source / page).write_text(text, encoding="utf-8")


def assemble(source: Path) -> None:
    """Write everything that Sphinx reads into a folder that is not there yet."""
    shutil.copytree(HERE / "pages", source)
    shutil.copytree(HERE / "static", source / "_static")
    shutil.copytree(HERE / "templates", source / "_templates")
    shutil.copy(HERE / "conf.py", source)
    for name in ("first-look", "lesson"):
        shutil.copy(ROOT / ".github" / f"{name}.png", source)
    write_lessons(source, words((HERE / "pages" / "glossary.md").read_text(encoding="utf-8")))
    page = source / "old_code.md"
    page.write_text(old_code_page(page.read_text(encoding="utf-8")), encoding="utf-8")
    write_reference(source)
    write_documents(source)


def main() -> int:
    """Write the book and say where it is."""
    parser = argparse.ArgumentParser(
        prog="python tools/book/build.py", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--out", type=Path, default=HERE / "html")
    out = parser.parse_args().out.resolve()
    page = out / "worth-it.html"  # written first, so that a folder of ours is known by it
    if out.exists() and not page.exists() and (not out.is_dir() or any(out.iterdir())):
        parser.error(f"{out} holds files of others. Name a new folder: --out")
    try:
        out.mkdir(parents=True, exist_ok=True)
        page.write_text(worth_it_page("."), encoding="utf-8")
    except OSError as error:
        parser.error(f"{error}. Name another folder: --out")
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "source"
        assemble(source)
        command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html"]
        status = subprocess.run([*command, source, out], cwd=ROOT).returncode
    print(f"The book: {out / 'index.html'}" if status == 0 else "Sphinx found what is named above.")
    return status


if __name__ == "__main__":
    sys.exit(main())
