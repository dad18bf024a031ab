"""Explain what is outdated in a text, file or notebook, and write it as it has to read today."""

import difflib
import os
import re
from dataclasses import dataclass, replace
from pathlib import Path

from course_tools.old_code.find_old_names import find_in_code, find_in_message, find_in_text
from course_tools.old_code.names_in_code import Names
from course_tools.old_code.parsed_code import Outdated
from course_tools.old_code.read_text import Part, Unreadable, is_python, joined, parts_of
from course_tools.old_code.trainer_arguments import Note
from course_utils.text import html_card

_SUFFIXES = ("", ".py", ".ipynb", ".md", ".markdown", ".rst", ".txt")


@dataclass(frozen=True, repr=False)
class Explanation:
    """The outdated parts of a text, and the text as it has to read today.

    Attributes:
        findings: in the order of the lines. One without a change needs a person.
        parts: name, text, and text after the changes that are sure: of all of it, or of "cell 3" of
            a notebook.
        text: the whole text after the changes.
    """

    findings: tuple[Note, ...]
    parts: tuple[tuple[str, str, str], ...]
    text: str

    def __repr__(self) -> str:
        lines = [str(note) for note in self.findings]
        return "\n".join(lines) or "No outdated use of PyTorch, torch_xla, Lightning or Darts found"

    def diff(self, name: str = "text") -> str:
        """Return the changes as a unified diff, that of a notebook cell by cell."""
        lines: list[str] = []
        for part, old, new in self.parts:
            label = f"{name} {part}".strip()
            before, after = old.splitlines(), new.splitlines()
            lines += difflib.unified_diff(before, after, label, f"{label} (today)", lineterm="")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = []
        for note in self.findings:
            where = f"{note.cell} {note.line}".strip()
            rows.append((where, note.old, note.new or "nothing", note.why))
        title = "What is outdated" if rows else repr(self)
        return html_card(title, ("line", "old", "today", "why"), rows)


def explain(source: str | os.PathLike) -> Explanation:
    """Find what is outdated in code of 2017 to today. The code is parsed, never run.

    What is not Python is left out: prose, the dots of a guide. The message of an error alone is
    read too. What has gone is asked of the installed packages.

    Args:
        source: the text itself, or the name of a file as a `Path` or as a text of one line:
            Python, a notebook, Markdown, reST or plain text. The empty lines before a text, such
            as the one after triple quotes, are left out.

    Raises:
        Unreadable: no such file, one of another kind, or a broken notebook.
    """
    text, suffix = _text_of(source)
    parts = parts_of(text, suffix)
    names = Names(parts)
    notes: dict[Note, None] = {}  # each once
    changed = []
    for part in parts:
        findings = _find_in(part, names)
        notes |= dict.fromkeys(finding.note for finding in findings)
        changed.append((part.name, part.text, _with_edits(part.text, findings)))
    is_changed = any(new != old for _, old, new in changed)
    new_text = joined(text, suffix, [new for _, _, new in changed]) if is_changed else text
    return Explanation(tuple(notes), tuple(changed), new_text)


def _text_of(source: str | os.PathLike) -> tuple[str, str]:
    """Return a text, or that of a file with the suffix of its name."""
    if isinstance(source, str) and not os.path.isfile(source):
        if re.fullmatch(r"[\w./\\:~ -]+\.(py|ipynb|md|rst|txt)", source):
            raise Unreadable(f"There is no file {source!r} here.")
        source = source.lstrip("\n")
        is_notebook = source.startswith("{") and '"cell_type"' in source
        return source, ".ipynb" if is_notebook else ""
    path = Path(source)
    suffix = path.suffix.lower()
    if suffix not in _SUFFIXES:
        kinds = "Python (.py), notebooks, Markdown, reST and plain text"
        raise Unreadable(f"{path} is a {suffix} file. This tool reads {kinds}.")
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            return file.read(), suffix
    except (OSError, ValueError) as error:
        raise Unreadable(f"{path} cannot be read: {error}") from None


def _find_in(part: Part, names: Names) -> list[Outdated]:
    """Return what is outdated in one part, in the order of its lines."""
    found: list[Outdated] = []
    for code in part.codes:
        found += find_in_code(code, names)
    for place, command in part.commands:
        found += find_in_text(command, place)
    if not found:
        for place, line in part.commands:
            found += find_in_message(line, place)
    found.sort(key=lambda finding: finding.place)
    numbered = []
    for each in found:
        number = part.text.count("\n", 0, each.place) + 1
        numbered.append(replace(each, note=replace(each.note, line=number, cell=part.name)))
    return numbered


def _with_edits(text: str, findings: list[Outdated]) -> str:
    """Return a text with its edits, unless they made Python no Python.

    An edit that overlaps an earlier one is left out.
    """
    pieces, done = [], 0
    for start, end, piece in sorted({edit for finding in findings for edit in finding.edits}):
        if start >= done:
            pieces += [text[done:start], piece]
            done = end
    new = "".join([*pieces, text[done:]])
    return new if is_python(new) or not is_python(text) else text
