"""Write the set-up cell into every lesson: `python tools/setup_cell.py`, or `make setup-cell`.

With `--repository owner/name` (and `--branch`, and `--published` once PyPI has the course) it first
writes these into pyproject.toml, from where the set-up cell learns what pip installs. With an
address it also writes the launch links into the lessons and the README, a line of links under the
README's title, the address to clone, and the links that PyPI shows. Run again it changes nothing;
`--repository ""` takes all of it out.
"""

import argparse
import json
import re
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
from course_utils.atomic_write import write_atomically  # noqa: E402

BADGES = {
    "Colab": "https://colab.research.google.com/assets/colab-badge.svg",
    "Kaggle": "https://kaggle.com/static/images/open-in-kaggle.svg",
    "Binder": "https://mybinder.org/badge_logo.svg",
}
# JupyterLab, Colab and Kaggle each have a word of their own for a cell whose code is folded.
METADATA = {
    "_kg_hide-input": True,
    "cellView": "form",
    "jupyter": {"source_hidden": True},
    "slideshow": {"slide_type": "subslide"},  # its picture alone: tools/slides/config.py
    "tags": ["nbval-ignore-output"],  # it says what it added
}
# A link to another file of the course, which whoever has a lesson alone does not have.
LINK_TO_A_FILE = re.compile(r"\[([^\]]+)\]\((?![a-z]+:)[^)#]*?(\w+)\.(?:ipynb|md)(?:#[^)]*)?\)")
# What a lesson needs stands in course_lessons.setup: the cell itself only finds the course.
CELL = """
# @title Set-up: run this first
import sys
from pathlib import Path

course = "accelerator_course-*.whl"  # beside this file, or in a data set on Kaggle
sys.path += map(str, [*Path().glob(course), *Path("/kaggle/input").rglob(course)])
from course_lessons.setup import set_up  # not found? Add the wheel, or use `make lab`

set_up({lesson})
"""
# The same where the course has an address to install it from.
CELL_WITH_AN_ADDRESS = """
# @title Set-up: run this first
import sys
from pathlib import Path

sys.path += map(str, Path().glob("accelerator_course-*.whl"))
try:
    from course_lessons.setup import set_up
except ModuleNotFoundError:
    %pip install --quiet --no-deps {course}
    from course_lessons.setup import set_up
set_up({lesson})
"""


@dataclass(frozen=True)
class Address:
    """Where the course can be had, as pyproject.toml says."""

    repository: str
    branch: str
    published: bool
    version: str

    @property
    def course(self) -> str:
        """What pip installs: a release on PyPI, the wheel of a release on GitHub, or nothing."""
        if self.published:
            return f"accelerator-course=={self.version}"
        if self.repository:
            wheel = f"accelerator_course-{self.version}-py3-none-any.whl"
            return f"https://github.com/{self.repository}/releases/download/v{self.version}/{wheel}"
        return ""

    @property
    def book(self) -> str:
        """Where the workflow publishes the book."""
        owner, name = self.repository.split("/")
        return f"https://{owner.lower()}.github.io/{name}/"


def read_address() -> Address:
    """Return what pyproject.toml says."""
    read = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return Address(**read["tool"]["accelerator-course"], version=read["project"]["version"])


def launch_links(address: Address, lesson: str) -> dict[str, str]:
    """Return the address that opens a lesson on each host; none without a repository."""
    if not address.repository:
        return {}
    repo, branch = address.repository, address.branch
    path = f"{repo}/blob/{branch}/notebooks/{lesson}"
    folder = branch.replace("/", "%2F")
    return {
        "Colab": f"https://colab.research.google.com/github/{path}",
        "Kaggle": f"https://kaggle.com/kernels/welcome?src=https://github.com/{path}",
        "Binder": f"https://mybinder.org/v2/gh/{repo}/{folder}?labpath=notebooks%2F{lesson}",
    }


def without_links_to_files(text: str, address: Address) -> str:
    """Return Markdown whose links to other files lead to the book, or else are plain words."""
    link = rf"[\1]({address.book}\2.html)" if address.repository else r"\1"
    return LINK_TO_A_FILE.sub(link, text)


def setup_cell(address: Address, lesson: str = "") -> str:
    """Return the set-up cell of a lesson, which draws its opening picture."""
    cell = CELL_WITH_AN_ADDRESS if address.course else CELL
    name = f'"{lesson}"' if lesson else ""
    return cell.strip().replace("{course}", address.course).replace("{lesson}", name)


def stamp_lesson(text: str, name: str, address: Address) -> str:
    """Return a notebook, as the text of its file, with the set-up cell and the launch links."""
    notebook = json.loads(text)
    opening = notebook["cells"][0]
    title, *others = "".join(opening["source"]).splitlines()
    rest = "\n".join(others).lstrip("\n")
    rest = re.sub(r"\A(Launch: |\[!\[Open this lesson in ).*\n+", "", rest)
    links = launch_links(address, name).items()
    badges = [f"[![Open this lesson in {host}]({BADGES[host]})]({link})" for host, link in links]
    parts = [title, " ".join(badges), rest] if badges else [title, rest]
    opening["source"] = "\n\n".join(parts).splitlines(keepends=True)

    cell = next(cell for cell in notebook["cells"] if cell["id"].endswith("-setup"))
    cell["id"] = f"{name[:2]}-setup"
    cell["metadata"] = METADATA
    cell["source"] = setup_cell(address, Path(name).stem[3:]).splitlines(keepends=True)
    return json.dumps(notebook, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def stamp_readme(text: str, address: Address) -> str:
    """Return the README with the launch links in its table, and the line that clones the course."""

    def with_links(row: re.Match) -> str:
        links = launch_links(address, row[2]).items()
        shown = " · ".join(f"[{host}]({link})" for host, link in links)
        return f"{row[1]}<br>{shown} |" if shown else f"{row[1]} |"

    text = re.sub(r"(?m)^(\| \[.+?\]\(notebooks/(\S+\.ipynb)\))(?:<br>.*?)? \|", with_links, text)
    clone, book, first_line = "git clone", "", ""
    if address.repository:
        clone = f"git clone https://github.com/{address.repository} course"
        book = f" (or read it [online]({address.book}))"
        colab = launch_links(address, "00_start_here.ipynb")["Colab"]
        ways = {"Read it": address.book, "Open lesson 0": colab}
        ways["Ask the page"] = f"{address.book}worth-it.html"
        first_line = " | ".join(f"[{way}]({link})" for way, link in ways.items())
        tests = f"https://github.com/{address.repository}/actions/workflows/ci.yml"
        first_line += f" | [![Whether the tests pass]({tests}/badge.svg)]({tests})\n\n"
    text = re.sub(r"`git clone[^`]*`", f"`{clone}`", text)
    text = re.sub(r"\A(# .*\n\n)(?:\[Read it\].*\n\n)?", rf"\1{first_line}", text)
    page = f"{address.book}worth-it.html" if address.repository else "notebooks/08_worth_it.ipynb"
    picture = r'(?m)^<a href="[^"]*">(?=<picture>.*\bfirst-look\.png)'
    text = re.sub(picture, f'<a href="{page}">', text)
    return re.sub(r"(`make book`)(?: \(or read it \[online\].*?\)\))?", rf"\1{book}", text)


def stamp_pyproject(text: str, address: Address) -> str:
    """Return pyproject.toml with the address, and with the links that PyPI shows."""
    values = {
        "repository": json.dumps(address.repository),
        "branch": json.dumps(address.branch),
        "published": json.dumps(address.published),
    }
    for key, value in values.items():
        text = re.sub(rf"(?m)^{key} = .*$", f"{key} = {value}", text)
    text = re.sub(r"\[project\.urls\]\n(?:.+\n)*\n", "", text)
    if address.repository:
        home = f"https://github.com/{address.repository}"
        urls = {"Repository": home, "Book": address.book, "Issues": f"{home}/issues"}
        urls["Changelog"] = f"{home}/blob/main/CHANGELOG.md"
        lines = [f'{name} = "{url}"' for name, url in urls.items()]
        block = "\n".join(["[project.urls]", *lines, "", "[project.optional-dependencies]"])
        text = text.replace("[project.optional-dependencies]", block, 1)
    return text


def stamp(root: Path, address: Address) -> list[str]:
    """Rewrite every file that needs it, and return their names."""
    lessons = sorted((root / "notebooks").glob("*.ipynb"))
    changed = []
    for path in [root / "pyproject.toml", root / "README.md", *lessons]:
        old = path.read_text(encoding="utf-8")
        if path.suffix == ".ipynb":
            new = stamp_lesson(old, path.name, address)
        elif path.suffix == ".md":
            new = stamp_readme(old, address)
        else:
            new = stamp_pyproject(old, address)
        if new != old:
            write_atomically(path, new)
            changed.append(path.name)
    return changed


def main() -> None:
    """Read the command line, stamp, and say what changed."""
    here = read_address()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repository", default=here.repository, help="owner/name on GitHub")
    parser.add_argument("--branch", default=here.branch, help="with the copies that people open")
    parser.add_argument(
        "--published", action=argparse.BooleanOptionalAction, default=here.published
    )
    asked = parser.parse_args()
    if asked.repository and not re.fullmatch(r"[\w.-]+/[\w.-]+", asked.repository):
        parser.error(
            f"{asked.repository!r} is not an address. Write owner/name, such as ada/course."
        )
    if not re.fullmatch(r"\w[\w./-]*", asked.branch):
        parser.error(f"{asked.branch!r} is not the name of a branch.")
    changed = stamp(ROOT, Address(**vars(asked), version=here.version))
    print("Rewritten:", ", ".join(changed) or "nothing, all of it was right")


if __name__ == "__main__":
    sys.exit(main())
