"""Write the address of this repository everywhere it is shown: `make badges REPO=owner/name`.

The address is kept in pyproject.toml and nowhere else. From there this writes the launch line of
every lesson, the address of the wheel in their set-up cell, and the README's links. BRANCH is where
the release workflow puts the copies that people open. Run again it changes nothing, and with
REPO=OWNER/REPO every link gives way to a line that says how to set the address.
"""

import argparse
import os
import re
import sys
from pathlib import Path

PLACEHOLDER = "OWNER/REPO"
OWNER, NAME, BRANCH = (
    r"[A-Za-z0-9][A-Za-z0-9-]{0,38}",
    r"[A-Za-z0-9._-]{1,100}",
    r"[A-Za-z0-9][A-Za-z0-9._/-]*",
)
NO_ADDRESS = "`make badges REPO=owner/name` puts the links here, once this copy of the course has an address on GitHub."
BADGES = {
    "Colab": "https://colab.research.google.com/assets/colab-badge.svg",
    "Kaggle": "https://kaggle.com/static/images/open-in-kaggle.svg",
    "Binder": "https://mybinder.org/badge_logo.svg",
}
BEGIN, END = "<!-- launch links: written by make badges -->", "<!-- end of launch links -->"


def launch_links(repo: str, branch: str, lesson: str) -> dict[str, str]:
    """Return the address that opens a lesson on each host."""
    path = f"{repo}/blob/{branch}/notebooks/{lesson}"
    return {
        "Colab": f"https://colab.research.google.com/github/{path}",
        "Kaggle": f"https://kaggle.com/kernels/welcome?src=https://github.com/{path}",
        "Binder": f"https://mybinder.org/v2/gh/{repo}/{branch.replace('/', '%2F')}?labpath=notebooks%2F{lesson}",
    }


def badges(repo: str, branch: str, lesson: str) -> str:
    """Return the links that open a lesson, as Markdown with the badges that these hosts offer for
    it.
    """
    links = launch_links(repo, branch, lesson).items()
    return " ".join(
        f"[![Open this lesson in {host}]({BADGES[host]})]({link})" for host, link in links
    )


def wheel_line(repo: str, version: str) -> str:
    """Return what the set-up cell assigns: the address that the release workflow gives the wheel of
    one version.
    """
    if repo == PLACEHOLDER:
        return r"\".\"  # the wheel beside this notebook; `make badges` writes an address here"
    wheel = f"accelerator_course-{version}-py3-none-any.whl"
    return rf"\"https://github.com/{repo}/releases/download/v{version}/{wheel}\""


def substitute(pattern: str, replacement: str, text: str, where: Path) -> str:
    """Return the text with the one place that matches rewritten, or stop when it is not there
    exactly once.
    """
    text, count = re.subn(pattern, lambda match: match[1] + replacement, text, flags=re.MULTILINE)
    if count != 1:
        sys.exit(
            f"{where}: found {count} places like {pattern!r}, and there must be one. Nothing was written."
        )
    return text


def in_pyproject(text: str, where: Path, repo: str, branch: str) -> str:
    """Return pyproject.toml with the address in it."""
    text = substitute(r'^(repository = )"[^"]*"', f'"{repo}"', text, where)
    return substitute(r'^(branch = )"[^"]*"', f'"{branch}"', text, where)


def in_lesson(text: str, where: Path, repo: str, branch: str, version: str) -> str:
    """Return a notebook, as the text of its file, with the address in its launch line and its
    set-up cell.
    """
    line = NO_ADDRESS if repo == PLACEHOLDER else badges(repo, branch, where.name)
    text = substitute(r'^( *"Launch: ).*?(?=\\n",$)', line, text, where)
    return substitute(r'^( *"WHEEL = ).*?(?=\\n",$)', wheel_line(repo, version), text, where)


def in_readme(text: str, where: Path, repo: str, branch: str, lessons: list[Path]) -> str:
    """Return the README with the address in its table of launch links and in the first command."""
    rows = [
        f"| {lesson.name[:2].lstrip('0') or 0} | {badges(repo, branch, lesson.name)} |"
        for lesson in lessons
    ]
    owner, name = repo.split("/")
    book = f"Read it as a book: <https://{owner.lower()}.github.io/{name}/>"
    block = ["", book, "", "| Lesson | Open it on |", "|---|---|", *rows, ""]
    if repo == PLACEHOLDER:
        block = ["", NO_ADDRESS, ""]
    between = rf"^({re.escape(BEGIN)}\n)[\s\S]*?(?=^{re.escape(END)}$)"
    text = substitute(between, "\n".join(block) + "\n", text, where)
    clone = "ADDRESS-OF-THIS-REPOSITORY" if repo == PLACEHOLDER else f"https://github.com/{repo}"
    return substitute(r"^(git clone )\S+(?= course)", clone, text, where)


def rewritten(root: Path, repo: str, branch: str) -> dict[Path, str]:
    """Return the new text of every file that shows the address."""
    lessons = sorted((root / "notebooks").glob("*.ipynb"))
    texts = {
        path: path.read_text(encoding="utf-8")
        for path in (root / "pyproject.toml", root / "README.md", *lessons)
    }
    pyproject, readme, *_ = texts
    version = re.search(r'^version = "(.*)"$', texts[pyproject], re.MULTILINE)[1]
    return {
        pyproject: in_pyproject(texts[pyproject], pyproject, repo, branch),
        readme: in_readme(texts[readme], readme, repo, branch, lessons),
        **{lesson: in_lesson(texts[lesson], lesson, repo, branch, version) for lesson in lessons},
    }


def arguments() -> argparse.Namespace:
    """Return what the command line asks for, having checked it."""
    parser = argparse.ArgumentParser(prog="make badges", description=__doc__.splitlines()[0])
    text = "owner/name of the repository on GitHub (default: the variable REPO)"
    parser.add_argument("repo", nargs="?", default=os.environ.get("REPO", ""), help=text)
    parser.add_argument("branch", nargs="?", default=os.environ.get("BRANCH") or "lessons")
    parser.add_argument(
        "--root", type=Path, default=Path(__file__).resolve().parent.parent, help=argparse.SUPPRESS
    )
    asked = parser.parse_args()
    if not re.fullmatch(f"{OWNER}/{NAME}", asked.repo) or re.fullmatch(
        r".*(/\.+|\.git)", asked.repo, re.I
    ):
        parser.error(
            f"REPO={asked.repo!r} is not an address. Write owner/name: make badges REPO=ada/course BRANCH=lessons"
        )
    if not re.fullmatch(BRANCH, asked.branch) or ".." in asked.branch:
        parser.error(
            f"BRANCH={asked.branch!r} is not the name of a branch. Write it as git shows it: BRANCH=lessons"
        )
    return asked


def main() -> int:
    """Rewrite the files that need it and say which."""
    asked = arguments()
    new = rewritten(asked.root, asked.repo, asked.branch)
    stale = {path: text for path, text in new.items() if path.read_text(encoding="utf-8") != text}
    for path, text in stale.items():
        path.write_text(text, encoding="utf-8", newline="\n")
    names = ", ".join(path.name for path in stale) or "nothing, all of it was right"
    print(f"{asked.repo}, branch {asked.branch}. Rewritten: {names}.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
