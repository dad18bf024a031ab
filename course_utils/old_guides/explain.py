"""Explain what is outdated in a text, file or notebook, and write it as it has to read today. Nothing in it is run."""

import difflib
import os
from dataclasses import dataclass
from pathlib import Path

from course_utils.display.cards import html_card
from course_utils.old_guides.findings import find_in
from course_utils.old_guides.old_trainer import Note
from course_utils.old_guides.reading import Unreadable, mended, parses, read
from course_utils.old_guides.scope import Scope
from course_utils.old_guides.syntax import Code, Edit

__all__ = ["Explanation", "Unreadable", "explain"]
_LARGEST = 50_000_000  # bytes: a notebook has its pictures in it


@dataclass(frozen=True, repr=False)
class Explanation:
    """What is outdated in a text, and the text as it has to read today.

    Attributes:
        findings: in the order of the lines.
        before: each part of the text by its name: "" for all of it, "cell 3" for a cell of a notebook.
        after: the same, changed where the change is sure. A finding without a change needs a person.
        text: the whole text after the changes.
    """

    findings: tuple[Note, ...]
    before: dict[str, str]
    after: dict[str, str]
    text: str

    def __repr__(self) -> str:
        return "\n".join(map(str, self.findings)) or "Nothing here is outdated."

    def __iter__(self):
        return iter(self.findings)

    def __len__(self) -> int:
        return len(self.findings)

    def diff(self, name: str = "text") -> str:
        """Return the changes as a unified diff, that of a notebook cell by cell."""
        lines: list[str] = []
        for part, old in self.before.items():
            label = f"{name} {part}".strip()
            old_lines, new_lines = old.splitlines(), self.after[part].splitlines()
            lines += difflib.unified_diff(old_lines, new_lines, label, f"{label} (today)", lineterm="")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows: list[tuple[str, ...]] = []
        for note in self.findings:
            rows.append((f"{note.cell} {note.line}".strip(), note.old, note.new or "nothing", note.why))
        return html_card(
            "What is outdated" if rows else "Nothing here is outdated", ("line", "old", "today", "why"), rows
        )


def explain(source: str | os.PathLike) -> Explanation:
    """Find what is outdated in code of 2017 to today: names, arguments, keywords, methods and commands.

    The code is parsed, never run. It may be a fragment, Markdown or reST with code in it, a notebook, or what was
    pasted with prompts around it; what is not Python is left out. What has gone is asked of the
    installed packages.

    Args:
        source: the text itself, or the name of a file as a `Path` or as a text of one line.

    Raises:
        Unreadable: no such file, no text, a broken notebook, or too long.
    """
    text, suffix = _text_of(source)
    parts, join = read(text, suffix)
    try:
        codes = [[_code(*stretch) for stretch in part.code] for part in parts]
        scope = Scope([code for each in codes for code in each], "\n".join(part.text for part in parts))
        found = [find_in(part, each, scope) for part, each in zip(parts, codes, strict=True)]
        after = [
            _changed(part.text, [edit for _, _, edits in each for edit in edits])
            for part, each in zip(parts, found, strict=True)
        ]
    except RecursionError:
        raise Unreadable("The code is nested too deeply to be read.") from None
    notes = tuple(dict.fromkeys(note for each in found for note, _, _ in each))
    changed = any(new != part.text for part, new in zip(parts, after, strict=True))
    names = [part.name for part in parts]
    before = dict(zip(names, (part.text for part in parts), strict=True))
    return Explanation(notes, before, dict(zip(names, after, strict=True)), join(after) if changed else text)


def _code(offset: int, text: str) -> Code:
    """Return the syntax of a stretch; one that was cut out of a call or a docstring is made whole for that."""
    ways = mended(text)
    if ways == [("", "")] or parses(text):
        return Code(offset, text)
    codes = (Code(offset - len(before), f"{before}{text}" + f"\n{after}" * bool(after)) for before, after in ways)
    return min(codes, key=lambda code: code.errors)


def _text_of(source: str | os.PathLike) -> tuple[str, str]:
    if not isinstance(source, str | os.PathLike):
        raise Unreadable(f"{type(source).__name__}: give me a text, or the path of a file.")
    if isinstance(source, str) and ("\n" in source or len(source) > 300 or not _is_file(source)):
        return source, ""
    path = Path(source)
    try:
        if path.stat().st_size > _LARGEST:
            raise Unreadable(f"{path} is larger than {_LARGEST:,} bytes.")
        with path.open(encoding="utf-8-sig", newline="") as file:
            return file.read(), path.suffix.lower()
    except (OSError, ValueError) as error:
        raise Unreadable(f"{path} cannot be read: {error}") from None


def _is_file(name: str) -> bool:
    try:
        return Path(name).is_file()
    except (OSError, ValueError):
        return False


def _changed(text: str, edits: list[Edit]) -> str:
    """Return a text with its edits, of which none is made into another one, or so that Python breaks."""
    new, end = [], 0
    for start, stop, piece in sorted(dict.fromkeys(edits)):
        if start >= end:
            new += [text[end:start], piece]
            end = stop
    changed = "".join([*new, text[end:]])
    return text if edits and parses(text) and not parses(changed) else changed
