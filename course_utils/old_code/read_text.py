"""Find the Python in files, notebooks, Markdown, reST and pasted text."""

import ast
import json
import re
import textwrap
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field

from course_utils.old_code.parsed_code import Code


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


_COMMAND = re.compile(
    r"\s*(?:!(?!=)|%%?[a-zA-Z]|\$ ?[a-z]|(?:pip3?|conda) [a-z]"
    r"|[\w.]*(?:Error|Exception): |__init__\(\) got )"
)
_LEFT_OUT = re.compile(r"(\s*)(?:\.\.\.|…),?\s*")  # a line of dots
_FENCE = re.compile(r"\s*(?:```+|~~~+)\s*\{?\.?([\w+-]*)")
_INLINE = re.compile(r"\s*`[^`]+`\s*")  # a line of Markdown that is code as a whole
_DIRECTIVE = re.compile(r"(\s*)\.\. (?:code-block|code|sourcecode|testcode)::\s*(\w*)")
_PYTHON = ("", "python", "python3", "py", "ipython", "ipython3")
_SHELL = ("sh", "bash", "console", "shell")


def parts_of(text: str, suffix: str = "") -> list[Part]:
    """Return the parts of a text; `suffix` is that of its file's name, "" where there is none.

    Raises:
        Unreadable: a broken notebook.
    """
    if suffix == ".ipynb":
        cells = _code_cells(_notebook(text))
        parts = [Part(f"cell {number}", "".join(cell["source"])) for number, cell in cells]
    else:
        parts = [Part("", text)]
    for part in parts:
        is_prose = suffix in (".md", ".markdown", ".rst")
        if not is_prose and is_python(part.text):
            part.codes.append(Code(part.text))
        else:
            _read_blocks(part, suffix)
    return parts


def joined(text: str, suffix: str, parts: list[str]) -> str:
    """Return the text with these in the place of its parts."""
    if suffix != ".ipynb":
        return parts[0]
    book = _notebook(text)
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


def _notebook(text: str) -> dict:
    try:
        book = json.loads(text)
        _code_cells(book)
    except (ValueError, LookupError, TypeError) as error:
        raise Unreadable(f"This notebook cannot be read: {error}.") from None
    return book


def _code_cells(book: dict) -> list[tuple[int, dict]]:
    cells = enumerate(book["cells"], 1)
    return [(number, cell) for number, cell in cells if cell["cell_type"] == "code"]


def _read_blocks(part: Part, suffix: str) -> None:
    """Add the code and the commands of a text that is not Python as a whole."""
    lines = part.text.splitlines(keepends=True)
    is_plain = suffix not in (".py", ".ipynb")
    if suffix == ".rst" or (is_plain and any(_DIRECTIVE.match(line) for line in lines)):
        blocks = _directives(lines)
    elif is_plain and any(_FENCE.match(line) for line in lines):
        blocks = _fenced(lines)
    else:
        blocks = iter([("", 0, len(lines))])
    for language, first, last in blocks:
        start = sum(map(len, lines[:first]))
        block = "".join(lines[first:last])
        if language in _SHELL or block.startswith(("%%bash", "%%sh")):
            part.commands.append((start, block))
        elif language in _PYTHON:
            code = block if is_python(block) else _only_python(part, lines[first:last], start)
            part.codes.append(Code(code, start))


def _fenced(lines: list[str]) -> Iterator[tuple[str, int, int]]:
    """Yield the blocks of Markdown: language, first line, and the line after the last."""
    opened, language = None, ""
    for number, line in enumerate([*lines, "```"]):  # the last one may not be closed
        fence = _FENCE.match(line)
        if fence and opened is None:
            opened, language = number + 1, fence[1].lower()
        elif fence and opened is not None:
            yield language, opened, number
            opened = None
        elif opened is None and _INLINE.fullmatch(line):
            lines[number] = line.replace("`", " ")
            yield "", number, number + 1


def _directives(lines: list[str]) -> Iterator[tuple[str, int, int]]:
    """Yield the indented blocks under the directives of reST."""
    for number, line in enumerate(lines):
        opening = _DIRECTIVE.match(line)
        if opening is None:
            continue
        last = number + 1
        while last < len(lines) and _margin(lines[last]) > len(opening[1]):
            last += 1
        yield opening[2].lower(), number + 1, last


def _margin(line: str) -> int:
    """Return the width of the blanks before a line; an empty line belongs to any block."""
    return len(line) - len(line.lstrip()) if line.strip() else 1000


def _only_python(part: Part, lines: list[str], start: int) -> str:
    """Return a block in which what is no Python is blanked out, and each line as long as it was.

    Its commands are added to the part.
    """
    cleaned = []
    for line in lines:
        body = line.rstrip("\r\n")
        dots = _LEFT_OUT.fullmatch(body)
        if dots:
            new = f"{dots[1]}#"
        elif _COMMAND.match(body):
            part.commands.append((start, body.strip()))
            new = " " * _margin(body) + "0"  # so that a block is not empty
        else:
            new = body
        cleaned.append(new.ljust(len(body)) + line[len(body) :])
        start += len(line)
    return "".join(cleaned)
