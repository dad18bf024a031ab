"""Explain what is outdated in a text, file, notebook or the message of an error."""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from course_tools.old_code.find_idioms import find_in_text
from course_tools.old_code.find_in_message import find_in_message
from course_tools.old_code.find_outdated import find_in_code
from course_tools.old_code.installed import is_installed
from course_tools.old_code.names_in_code import Names
from course_tools.old_code.note import Note
from course_tools.old_code.old_names import KNOWN
from course_tools.old_code.parsed_code import Code
from course_tools.old_code.read_text import Unreadable, is_python, pieces_of, whole_text
from course_tools.old_code.trainer_arguments import removed_arguments
from course_tools.private import code_without_keys
from course_utils.tables import html_card, wrapped

# Packages that are asked whether they have a name, and what readers call them.
ASKED = {"torch": "torch", "lightning": "Lightning", "darts": "Darts", "numpy": "NumPy"}
_SUFFIXES = ("", ".py", ".ipynb", ".md", ".markdown", ".txt")


@dataclass(frozen=True, repr=False)
class Explanation:
    """The outdated parts of a text.

    Attributes:
        findings: in the order of the lines, each once.
    """

    findings: tuple[Note, ...]

    def __repr__(self) -> str:
        return "\n".join(map(_in_lines, self.findings)) or wrapped(all_clear())

    def _repr_html_(self) -> str:
        rows = []
        for note in self.findings:
            place = note.place if note.cell else str(note.line)
            rows.append((place, note.old, note.new or "nothing", note.why))
        title = "What is outdated" if rows else all_clear()
        return html_card(title, ("line", "old", "today", "why"), rows)


def _in_lines(note: Note) -> str:
    """Return a note with its reason below it, in lines that fit a terminal."""
    change = replace(note, why="")
    return f"{str(change).rstrip()}\n{wrapped(note.why, 2)}"


def all_clear() -> str:
    """Return what it means that nothing was found: what was looked for, and what was not."""
    counts = {name: sum(map(len, tables.values())) for name, tables in KNOWN.items()}
    counts["Lightning"] += len(removed_arguments())
    known = ", ".join(f"{count} of {name}" for name, count in counts.items())
    here = [name for package, name in ASKED.items() if is_installed(package)]
    absent = [name for name in ASKED.values() if name not in here]
    found = f"Nothing outdated was found among the old forms that this tool knows ({known})"
    if here:
        found += f", nor among names that the installed {', '.join(here)} lack"
    if absent:
        found += f". Not installed here, so not asked: {', '.join(absent)}"
    return (
        f"{found}. The code was read, not run: other packages, what a checkpoint holds, and "
        "arguments that a program puts together as it runs, were not looked at."
    )


def explain(source: str | os.PathLike) -> Explanation:
    """Find what is outdated in code of 2017 to today. The code is parsed, never run.

    What is not Python is left out: prose, the dots of a guide. The message of an error alone is
    read too. What has gone is asked of the installed packages.

    >>> explain("trainer = Trainer(gpus=2)").findings[0].new
    "accelerator='gpu', devices=2"

    Args:
        source: the text itself, or the name of a file as a `Path` or as a text of one line:
            Python, a notebook, Markdown or plain text. The empty lines before a text, such
            as the one after triple quotes, are left out.

    Raises:
        Unreadable: no such file, one of another kind, a broken notebook, or too much code.
    """
    text, suffix = _text_of(source)
    try:
        notes = list(_find_in(text, suffix))
    except RecursionError:
        raise Unreadable("This code is nested too deeply to be read.") from None
    notes.sort(key=lambda note: (note.cell, note.line))
    return Explanation(tuple(dict.fromkeys(map(_without_keys, notes))))


def _without_keys(note: Note) -> Note:
    """Return a note that can be pasted elsewhere."""
    old, new, why = map(code_without_keys, (note.old, note.new, note.why))
    return replace(note, old=old, new=new, why=why)


def _text_of(source: str | os.PathLike) -> tuple[str, str]:
    """Return a text, or that of a file with the suffix of its name."""
    if isinstance(source, str) and not _exists(source):
        if re.fullmatch(r"[^\n]+\.(py|ipynb|md|markdown|txt)", source, re.IGNORECASE):
            raise Unreadable(f"There is no file {source!r} here.")
        source = source.replace("\r\n", "\n").lstrip("\n")
        is_notebook = source.startswith("{") and '"cell_type"' in source
        return source, ".ipynb" if is_notebook else ""
    path = Path(source)
    suffix = path.suffix.lower()
    if suffix not in _SUFFIXES:
        kinds = "Python (.py), notebooks, Markdown and plain text"
        raise Unreadable(f"{path} is a {suffix} file. This tool reads {kinds}.")
    try:
        # A device has no end, and a pipe waits for its other end.
        if path.exists() and not path.is_file():
            raise Unreadable(f"{path} is no ordinary file.")
        with path.open("rb") as file:
            return whole_text(file, str(path), suffix), suffix
    except (OSError, ValueError) as error:
        raise Unreadable(f"{path} cannot be read: {error}") from None


def _exists(name: str) -> bool:
    try:
        return os.path.exists(name) and not os.path.isdir(name)
    except ValueError:  # a zero byte, or half a character
        return False


def _find_in(text: str, suffix: str) -> Iterator[Note]:
    pieces = list(pieces_of(text, suffix))
    codes = [Code(each.text, each.line, each.cell) for each in pieces if not each.is_command]
    names = Names(codes, text)
    is_anything = False
    for code in codes:
        for note in find_in_code(code, names):
            is_anything = True
            yield note
    for each in pieces:
        if each.is_command:
            for note in find_in_text(each.text):
                is_anything = True
                yield replace(note, line=each.line + note.line, cell=each.cell)
    if not is_anything and suffix not in (".py", ".ipynb") and not is_python(text):
        for number, line in enumerate(text.split("\n"), 1):
            for note in find_in_message(line):
                yield replace(note, line=number)
