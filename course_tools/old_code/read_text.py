"""Find the Python and the commands in files, notebooks, Markdown and pasted text."""

import ast
import json
import re
import textwrap
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

LONGEST = 1_000_000  # characters of code; parso reads a quarter of it in a second
MOST_BYTES = 4 * LONGEST  # of a text in UTF-8
MOST_BYTES_OF_NOTEBOOK = 64 * 1024**2  # most of which are pictures


class Unreadable(ValueError):
    """The reason why a text cannot be read at all."""


@dataclass(frozen=True)
class Piece:
    """A stretch of Python, or a line for a shell, and where it begins.

    Attributes:
        text: the lines of it.
        line: the number of the first one, in its file or cell.
        cell: the number of the cell in a notebook; 0 elsewhere.
        is_command: whether it is for a shell.
    """

    text: str
    line: int
    cell: int = 0
    is_command: bool = False


_COMMAND = re.compile(r"\s*(!(?!=)|%%?[a-zA-Z]|\$ ?[a-z]|(pip3?|conda) [a-z])")
_DOTS = ("...", "…", "...,", "…,", ".")  # where a guide leaves out arguments
_FENCE = re.compile(r"\s*(```|~~~)[`~ {.]*([\w-]*)")
_INLINE = re.compile(r"\s*`([^`]+)`\s*$")  # a line of Markdown that is code as a whole
_PYTHON = ("", "python", "python3", "py", "ipython", "ipython3")
_SHELL = ("sh", "bash", "console", "shell")


def whole_text(file: BinaryIO, name: str, suffix: str = "") -> str:
    """Read a text, and no more of it than could be answered.

    Raises:
        Unreadable: the file is too large, or not in UTF-8.
    """
    most = MOST_BYTES_OF_NOTEBOOK if suffix == ".ipynb" else MOST_BYTES
    content = file.read(most + 1)
    if len(content) > most:
        reason = f"{name} is larger than {most // 1_000_000} MB"
        raise Unreadable(f"{reason}, the most that this tool reads: give it the part in question.")
    try:
        return content.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise Unreadable(f"{name} cannot be read: {error}") from None


def pieces_of(text: str, suffix: str = "") -> Iterator[Piece]:
    """Yield the code and the commands of a text, whose file's name ends in `suffix`.

    Raises:
        Unreadable: a broken notebook, or more code than `LONGEST`.
    """
    cells = _cells_of(text) if suffix == ".ipynb" else [(0, text)]
    length = sum(len(source) for _, source in cells)
    if length > LONGEST:
        reason = f"This text has {length:,} characters. This tool reads up to {LONGEST:,}"
        raise Unreadable(f"{reason}: give it the part in question.")
    for cell, source in cells:
        for language, line, block in _blocks_of(source, suffix):
            if language in _SHELL:
                yield from (_command(each, line + n, cell) for n, each in _numbered(block))
            elif language in _PYTHON and is_python(block):
                yield Piece(textwrap.dedent(block), line, cell)
            elif language in _PYTHON:
                yield from _python_and_commands(block, line, cell)


def is_python(text: str) -> bool:
    """Say whether a text is Python 3, as it stands or moved to the left margin."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of an escape such as "\d"
            ast.parse(textwrap.dedent(text))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _cells_of(text: str) -> list[tuple[int, str]]:
    """Return the number and the text of each cell with code."""
    try:
        cells = enumerate(json.loads(text)["cells"], 1)
        sources = [
            (number, each["source"]) for number, each in cells if each["cell_type"] == "code"
        ]
        return [(number, "".join(source)) for number, source in sources]
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise Unreadable(f"This notebook cannot be read: {error}.") from None


def _blocks_of(text: str, suffix: str) -> Iterator[tuple[str, int, str]]:
    """Yield the language, the first line and the text of each block of code."""
    if suffix in (".py", ".ipynb") or is_python(text):
        yield "", 1, text
        return
    blocks = list(_fences(text.split("\n")))
    is_markdown = suffix in (".md", ".markdown")
    yield from blocks if blocks or is_markdown else [("", 1, text)]


def _fences(lines: list[str]) -> Iterator[tuple[str, int, str]]:
    mark, language, start = "", "", 0
    for number, line in enumerate([*lines, ""], 1):
        fence = _FENCE.match(line)
        if mark and (number > len(lines) or (fence and fence[1] == mark)):
            yield language, start, "\n".join(lines[start - 1 : number - 1])
            mark = ""
        elif fence and not mark:
            mark, language, start = fence[1], fence[2].lower(), number + 1
        elif not mark and (inline := _INLINE.match(line)):
            yield "", number, inline[1]


def _python_and_commands(block: str, line: int, cell: int) -> Iterator[Piece]:
    """Yield the commands among lines of Python, and the Python with blanks in their place."""
    kept = []
    for number, each in _numbered(block):
        if _COMMAND.match(each):
            yield _command(each, line + number, cell)
            each = each[: len(each) - len(each.lstrip())] + "0"  # so that a block is not empty
        kept.append("" if each.strip() in _DOTS else each)
    yield Piece(textwrap.dedent("\n".join(kept)), line, cell)


def _numbered(block: str) -> Iterator[tuple[int, str]]:
    return enumerate(block.split("\n"))


def _command(text: str, line: int, cell: int) -> Piece:
    return Piece(text, line, cell, is_command=True)
