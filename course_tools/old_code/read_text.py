"""Find the Python in files, notebooks, Markdown, reST and pasted text."""

import ast
import json
import re
import textwrap
import warnings
from dataclasses import dataclass, field

from course_tools.old_code.parsed_code import Code


class Unreadable(ValueError):
    """The reason why a text cannot be read at all."""


@dataclass(frozen=True)
class Part:
    """A file, or one cell of a notebook.

    Attributes:
        name: "" for a file, or the cell, such as "cell 3".
        text: all of it.
        codes: its Python. A place in them is a place in `text`.
        commands: its lines for a shell, and the message of an error, each with its place.
    """

    name: str
    text: str
    codes: list[Code] = field(default_factory=list)
    commands: list[tuple[int, str]] = field(default_factory=list)


# A line for a shell, or the message of an error.
_COMMAND = re.compile(
    r"^([ \t]*)(?:!(?!=)|%%?[a-zA-Z]|\$ ?[a-z]|(?:pip3?|conda) [a-z]"
    r"|[\w.]*(?:Error|Exception): |__init__\(\) got ).*",
    re.MULTILINE,
)
_DOTS = re.compile(r"^([ \t]*)[.…](?=(?:\.\.)?,?\s*$)", re.MULTILINE)  # a line of dots
# Code between the fences of Markdown, and a line of Markdown that is code as a whole.
_FENCED = re.compile(
    r"^[ \t]*(?:```|~~~)[`~ {.]*(?P<language>[\w-]*).*\n"
    r"(?P<code>[\s\S]*?)(?:^[ \t]*(?:```|~~~)|\Z)",
    re.MULTILINE,
)
_INLINE = re.compile(r"^[ \t]*`(?P<code>[^`\n]+)`(?P<language>)\s*?$", re.MULTILINE)
# Code that is indented under a directive of reST.
_DIRECTIVE = re.compile(
    r"^([ \t]*)\.\. (?:code-block|code|sourcecode|testcode)::[ \t]*(?P<language>\w*).*\n"
    r"(?P<code>(?:\1[ \t]+\S.*\n?|\s*\n)*)",
    re.MULTILINE,
)
_PYTHON = ("", "python", "python3", "py", "ipython", "ipython3")
_SHELL = ("sh", "bash", "console", "shell")


def parts_of(text: str, suffix: str = "") -> list[Part]:
    """Return the parts of a text; `suffix` is that of its file's name, "" where there is none.

    Raises:
        Unreadable: a broken notebook.
    """
    parts = [Part("", text)]
    if suffix == ".ipynb":
        try:
            cells = _code_cells(json.loads(text))
        except (ValueError, LookupError, TypeError) as error:
            raise Unreadable(f"This notebook cannot be read: {error}.") from None
        parts = [Part(f"cell {number}", "".join(cell["source"])) for number, cell in cells]
    for part in parts:
        if is_python(part.text):
            part.codes.append(Code(part.text))
        else:
            _read_blocks(part, suffix)
    return parts


def joined(text: str, suffix: str, parts: list[str]) -> str:
    """Return the text with these in the place of its parts."""
    if suffix != ".ipynb":
        return parts[0]
    book = json.loads(text)
    for (_, cell), new in zip(_code_cells(book), parts, strict=True):
        cell["source"] = new.splitlines(keepends=True)
    return json.dumps(book, indent=1, ensure_ascii=False) + "\n"  # as Jupyter writes it


def is_python(text: str) -> bool:
    """Say whether a text is Python 3, as it stands or moved to the left margin."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of an escape such as "\d"
            ast.parse(textwrap.dedent(text))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _code_cells(book: dict) -> list[tuple[int, dict]]:
    cells = enumerate(book["cells"], 1)
    return [(number, cell) for number, cell in cells if cell["cell_type"] == "code"]


def _read_blocks(part: Part, suffix: str) -> None:
    """Add the code and the commands of a text that is not Python as a whole."""
    if suffix in (".py", ".ipynb"):
        patterns = []
    elif suffix == ".rst" or _DIRECTIVE.search(part.text):
        patterns = [_DIRECTIVE]
    else:
        patterns = [_FENCED, _INLINE]
    blocks = []
    for pattern in patterns:
        for match in pattern.finditer(part.text):
            blocks.append((match["language"].lower(), match.start("code"), match["code"]))
    if not blocks and suffix not in (".md", ".markdown", ".rst"):
        blocks = [("", 0, part.text)]
    for language, start, block in blocks:
        if language in _SHELL:
            part.commands.append((start, block))
        elif language in _PYTHON:
            code = block if is_python(block) else _only_python(part, block, start)
            part.codes.append(Code(code, start))


def _only_python(part: Part, text: str, start: int) -> str:
    """Blank out what is not Python, so that each line keeps its length.

    The commands are added to the part.
    """
    for match in _COMMAND.finditer(text):
        part.commands.append((start + match.start(), match[0].strip()))
    return _COMMAND.sub(_blanked, _DOTS.sub(r"\1#", text))


def _blanked(command: re.Match) -> str:
    """Return a line of the same length, with a zero so that a block is not empty."""
    return command[1] + "0".ljust(len(command[0]) - len(command[1]))
