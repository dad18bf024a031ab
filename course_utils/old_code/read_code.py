"""Find the Python in files, notebooks, Markdown, reST and pasted text."""

import ast
import json
import re
import textwrap
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from course_utils.old_code.parsed_code import Code

LIMIT = 600_000  # characters, which take some seconds


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
_PROMPT = re.compile(r"\s*(?:>>> ?|\.\.\. (?=.))")
_LEFT_OUT = re.compile(r"(\s*)(?:\.\.\.|…),?\s*")  # a line of dots
_FENCE = re.compile(r"\s*(?:```+|~~~+)\s*\{?\.?([\w+-]*)")
_INLINE = re.compile(r"\s*`[^`]+`\s*")  # a line of Markdown that is code as a whole
_DIRECTIVE = re.compile(r"(\s*)\.\. (?:code-block|code|sourcecode|testcode)::\s*(\w*)")
_PYTHON = ("", "python", "python3", "py", "pycon", "ipython", "ipython3")
_SHELL = ("sh", "bash", "console", "shell")


def parts_of(text: str, suffix: str = "") -> list[Part]:
    """Return the parts of a text; `suffix` is that of its file's name, "" where there is none.

    Raises:
        Unreadable: a broken notebook, no text, or more of it than `LIMIT`.
    """
    if suffix == ".ipynb":
        parts = [Part(name, cell) for name, cell in _cells(_notebook(text))]
    else:
        parts = [Part("", text)]
    if sum(len(part.text) for part in parts) > LIMIT or "\0" in text:
        raise Unreadable(f"This is no text, or has more than {LIMIT:,} characters.")
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
    code_cells = [cell for cell in book["cells"] if cell["cell_type"] == "code"]
    for cell, new in zip(code_cells, parts, strict=True):
        cell["source"] = new.splitlines(keepends=True) if isinstance(cell["source"], list) else new
    indent = re.match(r"\{\s*?\n( *)", text)
    width = len(indent[1]) if indent else None
    end = "\n" if text.endswith("\n") else ""
    return json.dumps(book, indent=width, ensure_ascii=text.isascii()) + end


def is_python(text: str) -> bool:
    """Say whether a text is Python 3, as it stands or moved to the left margin."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of an escape such as "\d"
            ast.parse(textwrap.dedent(text))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _notebook(text: str) -> Any:
    try:
        book = json.loads(text)
        list(_cells(book))
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise Unreadable(f"This notebook cannot be read: {error}.") from None
    return book


def _cells(book: Any) -> Iterator[tuple[str, str]]:
    for number, cell in enumerate(book["cells"], 1):
        if cell["cell_type"] == "code":
            yield f"cell {number}", "".join(cell["source"])


def _read_blocks(part: Part, suffix: str) -> None:
    lines = part.text.splitlines(keepends=True)
    for language, first, last in _blocks(lines, suffix):
        start = sum(map(len, lines[:first]))
        block = lines[first:last]
        if language in _SHELL or (block and block[0].startswith(("%%bash", "%%sh"))):
            part.commands.append((start, "".join(block)))
        elif language == "inline":
            part.codes.append(Code(block[0].replace("`", " "), start))
        elif language in _PYTHON:
            part.codes.append(Code(_only_python(block, start, part.commands), start))


def _blocks(lines: list[str], suffix: str) -> Iterator[tuple[str, int, int]]:
    """Yield the blocks of code: language, first line, and the line after the last."""
    is_plain = suffix not in (".py", ".ipynb")
    if suffix == ".rst" or (is_plain and any(_DIRECTIVE.match(line) for line in lines)):
        yield from _directives(lines)
    elif is_plain and any(_FENCE.match(line) for line in lines):
        fences = []
        for number, line in enumerate(lines):
            if fence := _FENCE.match(line):
                fences.append((number, fence[1].lower()))
        ends = [number for number, _ in fences[1::2]] + [len(lines)]  # one may not be closed
        in_fences: set[int] = set()
        for (first, language), last in zip(fences[::2], ends, strict=False):
            in_fences.update(range(first, last + 1))
            yield language, first + 1, last
        for number, line in enumerate(lines):
            if number not in in_fences and _INLINE.fullmatch(line):
                yield "inline", number, number + 1
    else:
        yield "", 0, len(lines)


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


def _only_python(lines: list[str], start: int, commands: list[tuple[int, str]]) -> str:
    """Return a block in which what is no Python is blanked out, and each line as long as it was.

    Its commands are added to `commands`.
    """
    if is_python("".join(lines)):
        return "".join(lines)
    has_prompts = any(line.lstrip().startswith(">>>") for line in lines)
    cleaned = []
    for line in lines:
        body = line.rstrip("\r\n")
        prompt = _PROMPT.match(body) if has_prompts else None
        dots = _LEFT_OUT.fullmatch(body)
        if prompt:
            new = " " * prompt.end() + body[prompt.end() :]
        elif has_prompts:  # what a session printed
            new = ""
        elif dots:
            new = f"{dots[1]}#"
        elif _COMMAND.match(body):
            commands.append((start, body.strip()))
            new = " " * _margin(body) + "0"  # so that a block is not empty
        else:
            new = body
        cleaned.append(new.ljust(len(body)) + line[len(body) :])
        start += len(line)
    return "".join(cleaned)
