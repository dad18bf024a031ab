"""Find the Python and the shell lines in what people have: files, notebooks, Markdown, reST,
fragments, pasted text.
"""

import ast
import json
import re
import textwrap
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from course_utils.old_code.syntax import Code

LIMIT = 600_000  # characters, which take some seconds


class Unreadable(ValueError):
    """The reason why a text cannot be read at all."""


@dataclass(frozen=True)
class Part:
    """A file, or one cell of a notebook."""

    name: str  # "" or the cell, such as "cell 3"
    text: str
    # cleaned character for character, so that a place in one is a place in `text`
    codes: list[Code]
    shell: list[tuple[int, str]]  # lines for a shell, with the place where each begins


# Characters that come from web pages and word processors, and `async`, which was no keyword before
# Python 3.7.
_BLANKS, _SINGLE, _DOUBLE = (
    "\u00a0\u2007\u202f\u200b\ufeff",
    "\u2018\u2019\u2032",
    "\u201c\u201d\u2033",
)
_PASTED = str.maketrans(_BLANKS + _SINGLE + _DOUBLE, " " * 5 + "'" * 3 + '"' * 3)
_ASYNC = re.compile(r"\basync(?=\s*=[^=])")
_SHELL = re.compile(
    r"\s*(?:!(?!=)|%%?[a-zA-Z]|\$ ?(?=[a-z]|[A-Z_]+=)|-- |--\w|[\w.]*(?:Error|Exception): "
    r"|(?:pip3?|conda|sudo|gsutil|gcloud|srun|torchrun|export|cd)\s+[\w./\"'-]|(?:[A-Z_]+=\S+\s+)*python3?\s+\S*[-./])"
)
_PROMPT = re.compile(r"\s*(?:>>> ?|\.\.\. (?=.)|\.{3,}: ?|In\s?\[\d*\]: ?)")
_NUMBERED = re.compile(r"\s*\d+[.:|]?(?=\s|$) ?")
_DIFF = re.compile(r"[-+@ ]|\s*$|diff |index |\\ ")  # how each line of a diff begins
_DOTS = re.compile(r"(\s*)(?:\.\.\.|…)(,?\s*)")
_FENCE = re.compile(r"\s*(?:```+|~~~+)\s*\{?\.?([\w+-]*)")
_DIRECTIVE = re.compile(
    r"(\s*)(?:\.\. (?:code-block|code|sourcecode|testcode|ipython|jupyter-execute)::\s*(\w*)|(?!\.\. ).*::\s*$)"
)
_KINDS = dict.fromkeys(
    ("", "python", "python3", "py", "pycon", "ipython", "ipython3", "diff"), "python"
)
# What is no command in these is left out.
_KINDS |= dict.fromkeys(("sh", "bash", "console", "shell", "zsh", "yaml", "text", "none"), "shell")


def read(text: str, suffix: str = "") -> tuple[list[Part], Callable[[list[str]], str]]:
    """Return the parts of a text, and what puts the texts of changed parts together again.

    The suffix is that of the file's name, such as ".md"; "" finds out what the text is.

    Raises:
        Unreadable: a broken notebook, or more text than `LIMIT`.
    """
    if suffix == ".ipynb" or (
        text.lstrip().startswith("{") and re.search(r'"(cells|cell_type)"\s*:', text)
    ):
        found, join = _notebook(text)
    else:
        found, join = [("", text)], "".join
    if sum(len(each) for _, each in found) > LIMIT or any("\0" in each for _, each in found):
        raise Unreadable(
            f"This is no text, or has more than {LIMIT:,} characters: give me the part you mean."
        )
    return [_part(name, each, ".py" if name else suffix) for name, each in found], join


def parses(text: str) -> bool:
    """Say whether a text is Python 3 as it stands, or once it is moved to the left margin."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of an escape such as "\d"
            ast.parse(textwrap.dedent(text))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _notebook(text: str) -> tuple[list[tuple[str, str]], Callable[[list[str]], str]]:
    try:
        book = json.loads(text)
        cells = {
            f"cell {number}": cell
            for number, cell in enumerate(book["cells"], 1)
            if cell["cell_type"] == "code"
        }
        sources = [(name, "".join(cell["source"])) for name, cell in cells.items()]
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise Unreadable(
            f"This looks like a notebook, but is none that can be read: {error}."
        ) from None
    indent = re.match(r"\{\s*?\n( *)", text)

    def join(texts: list[str]) -> str:
        for cell, new in zip(cells.values(), texts, strict=True):
            cell["source"] = (
                new.splitlines(keepends=True) if isinstance(cell["source"], list) else new
            )
        width = len(indent[1]) if indent else None
        return json.dumps(book, indent=width, ensure_ascii=text.isascii()) + "\n" * text.endswith(
            "\n"
        )

    return sources, join


def _part(name: str, text: str, suffix: str) -> Part:
    if suffix not in (".md", ".rst", ".sh") and parses(text):
        return Part(name, text, [Code(0, text)], [])
    part = Part(name, text, [], [])
    lines = text.splitlines(keepends=True)
    for kind, first, last in _blocks(lines, suffix):
        start = sum(map(len, lines[:first]))
        cleaned, commands = _cleaned(lines[first:last], start, kind)
        part.codes.append(_code(start, cleaned))
        part.shell.extend(commands)
    return part


def _blocks(lines: list[str], suffix: str) -> Iterator[tuple[str, int, int]]:
    """Yield the blocks of code, as "python" or "shell" with their first line and the one after
    their last.
    """
    has_directive = any(re.match(r"\s*\.\. (code|test|source)", line) for line in lines)
    if suffix == ".sh" or (lines and lines[0].startswith(("%%bash", "%%sh", "%%script"))):
        yield "shell", 0, len(lines)
    elif suffix == ".rst" or (suffix == "" and has_directive):
        yield from _indented(lines)
    elif any(_FENCE.match(line) for line in lines):
        yield from _fences(lines)
    else:
        yield "python", 0, len(lines)


def _fences(lines: list[str]) -> Iterator[tuple[str, int, int]]:
    """Yield the blocks between fences. One that is never closed goes to the end, one never opened
    begins at the top.
    """
    fences = [
        (number, found[1]) for number, line in enumerate(lines) if (found := _FENCE.match(line))
    ]
    above = lines[: fences[0][0]] if len(fences) % 2 and not fences[0][1] else []
    likely = sum(1 if _SHELL.match(line) or parses(line) else -1 for line in above)
    # only an opening fence names a language
    if likely > 0 or any(language for _, language in fences[1::2]):
        fences = [(-1, ""), *fences]  # the text was cut off inside a block
    for (first, language), (last, _) in zip(
        fences[::2], [*fences[1::2], (len(lines), "")], strict=False
    ):
        if kind := _KINDS.get(language.lower()):
            yield kind, first + 1, last


def _indented(lines: list[str]) -> Iterator[tuple[str, int, int]]:
    """Yield the indented blocks under the directives of reST. A text that begins indented was cut
    off inside one.
    """
    is_cut = next((line for line in lines if line.strip()), "")[:1].isspace()
    last = -1
    for first, line in enumerate([".. code::" if is_cut else "", *lines]):
        opening = _DIRECTIVE.match(line)
        if opening is None or first <= last:
            continue
        last = first
        while last < len(lines) and (
            not lines[last].strip() or _margin(lines[last]) > len(opening[1])
        ):
            last += 1
        while first < last and (not lines[first].strip() or re.match(r"\s*:[\w-]+:", lines[first])):
            first += 1
        if kind := _KINDS.get((opening[2] or "").lower()):
            yield kind, first, last


def _margin(line: str) -> int:
    return len(line) - len(line.lstrip())


def _cleaned(lines: list[str], place: int, kind: str) -> tuple[str, list[tuple[int, str]]]:
    """Return the Python of a block, each line as long as it was, and its lines for a shell."""
    is_diff = any(line.startswith("+") for line in lines) and all(
        _DIFF.match(line) for line in lines
    )
    if kind == "python" and not is_diff and parses("".join(lines)):
        return "".join(lines), []
    is_numbered = len(lines) > 1 and all(_NUMBERED.match(line) for line in lines)
    before = re.compile("[+ ]") if is_diff else _NUMBERED if is_numbered else _PROMPT
    prompts = is_diff or any(line.lstrip().startswith(">>>") for line in lines)
    cleaned: list[str] = []
    shell: list[tuple[int, str]] = []
    follows = False
    for line in lines:
        body = line.rstrip("\r\n")
        prompt = before.match(body)
        is_shell = (
            kind == "shell" or follows or bool(_SHELL.match(body[prompt.end() if prompt else 0 :]))
        )
        # one command over several lines
        if is_shell and shell and (follows or body.lstrip().startswith("--")):
            shell[-1] = (shell[-1][0], f"{shell[-1][1].removesuffix(chr(92))} {body.strip()}")
        elif is_shell:
            shell.append((place, body.strip()))
        follows = is_shell and body.endswith("\\")
        opens = bool(cleaned) and cleaned[-1].rstrip().endswith(":")
        cleaned.append(
            _cleaned_line(body, prompt, is_shell or (prompts and not prompt), opens)
            + line[len(body) :]
        )
        place += len(line)
    return "".join(cleaned), shell


def _cleaned_line(line: str, prompt: Any, leave_out: bool, opens: bool) -> str:
    """Return a line of Python without what pasting put into it, and blanks in place of what is no
    Python.
    """
    if leave_out:  # a block needs something in it
        margin = _margin(line)
        return (" " * margin + "0" * (opens and margin < len(line))).ljust(len(line))
    if prompt:
        line = " " * prompt.end() + line[prompt.end() :]
    if dots := _DOTS.fullmatch(line):  # what a guide leaves out
        line = f"{dots[1]}#{' ' * (len(line) - len(dots[1]) - 1)}"
    return _ASYNC.sub("asynC", line.translate(_PASTED))


_TOKEN = re.compile(
    r"""#[^\n]*|("{3}|'{3})[\s\S]*?(?:\1|$)|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|[()\[\]{}]"""
)
_PAIRS = {"(": ")", "[": "]", "{": "}"}


def _code(offset: int, text: str) -> Code:
    """Return the code of a stretch; one that was cut out of a call or of a docstring is made whole
    for that.

    A call of which only the end is there is taken for that of a Trainer: if it is not, its
    arguments say so. Where the quotes do not say whether the text begins or ends inside a string,
    there are two ways.
    """
    ways = [_brackets(text)]
    for quotes in ('"""', "'''"):
        if text.count(quotes) % 2:
            ways.append((quotes, _brackets(text.partition(quotes)[2])[1]))
    codes = (
        Code(offset - len(before), f"{before}{text}" + f"\n{after}" * bool(after))
        for before, after in ways
    )
    return min(codes, key=lambda code: code.errors)


def _brackets(text: str) -> tuple[str, str]:
    before, closing = "", ""
    for token in (match[0] for match in _TOKEN.finditer(text) if match[0] in "()[]{}"):
        if token in _PAIRS:
            closing = _PAIRS[token] + closing
        elif closing.startswith(token):
            closing = closing[1:]
        elif not closing:
            before = {")": "_Trainer(", "]": "[", "}": "{"}[token] + before
    return before, closing
