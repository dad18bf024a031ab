"""The course's training scripts and the pictures of their differences.

A lesson shows a script in one `%%writefile` cell whose text is the file, byte for byte, and runs it
as a reader would: `!python train_gpu.py --epochs 2`.
"""

import difflib
import html
from pathlib import Path

FOLDER = Path(__file__).parent
# Each colour of the text has a background of its own, so that it can be read in a dark theme too.
# The signs say the same without colour.
STYLES = {
    "+": "color: #14532d; background: #e3f4e8",
    "-": "color: #7a2e12; background: #fbe9e2",
    " ": "opacity: 0.75",  # what stays, so that one sees where the change belongs
}
HEIGHT = 1.5  # of a line: at 1.2 the next line's background hid underscores


class Diff:
    """The lines that turn one script into another, shown in colour in a notebook.

    A gap between two places is an empty line. Lines that only the old script has begin with -,
    lines that only the new one has with +, and lines around them that stay with a blank.
    """

    def __init__(self, old: str, new: str, lines: list[str]):
        self.old, self.new, self.lines = old, new, lines

    @property
    def added(self) -> int:
        """The number of lines that only the new script has."""
        return sum(line.startswith("+") for line in self.lines)

    @property
    def removed(self) -> int:
        """The number of lines that only the old script has."""
        return sum(line.startswith("-") for line in self.lines)

    @property
    def title(self) -> str:
        """One line that counts the changes."""
        return f"{self.old} -> {self.new}: {self.removed} lines out, {self.added} lines in"

    def __repr__(self) -> str:
        return "\n".join([self.title, *self.lines])

    def _repr_html_(self) -> str:
        rows = []
        for line in self.lines:
            style = STYLES[line[0]] if line else "height: 0.5em"
            rows.append(f'<div style="{style}">{html.escape(line)}</div>')
        # The lines are as wide as the longest of them, so that their background goes along where
        # they are scrolled, and high enough for the tails of letters and underscores.
        lines = f'<div style="width: max-content; min-width: 100%">{"".join(rows)}</div>'
        box = f"overflow-x: auto; font-family: monospace; white-space: pre; line-height: {HEIGHT}"
        title = html.escape(self.title)
        focus = 'tabindex="0"'  # so that the keyboard can scroll it
        return f'<div class="course-diff" {focus} style="{box}"><div>{title}</div>{lines}</div>'


def show_diff(old: str, new: str, context: int = 1) -> Diff:
    """Return what has to change in one script of the course to become another.

    Args:
        old: the name of the script to start from, such as "train_cpu.py".
        new: the name of the script to arrive at.
        context: how many unchanged lines to show around each change.

    Raises:
        ValueError: there is no such script.
    """
    before, after = _read(old).splitlines(), _read(new).splitlines()
    lines: list[str] = []
    for line in difflib.unified_diff(before, after, n=context, lineterm=""):
        if line.startswith(("---", "+++")):
            continue
        if line.startswith("@@"):
            if lines:
                lines.append("")
        elif line[1:].strip():  # a line that is only blank says nothing
            lines.append(f"{line[0]} {line[1:]}")
    return Diff(old, new, lines)


def _read(name: str) -> str:
    names = sorted(path.name for path in FOLDER.glob("train_*.py"))
    if name not in names:
        raise ValueError(f"{name!r} is not a script of the course, which has {', '.join(names)}.")
    return (FOLDER / name).read_text(encoding="utf-8")
