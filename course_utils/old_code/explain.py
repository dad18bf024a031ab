"""Explain what is outdated in a text, file or notebook, and write it as it has to read today.
Nothing in it is run.
"""

import difflib
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from course_utils.old_code.arguments import Finding
from course_utils.old_code.findings import find_in
from course_utils.old_code.old_trainer import Note
from course_utils.old_code.reading import Unreadable, parses, read
from course_utils.old_code.scope import Scope
from course_utils.old_code.syntax import Edit
from course_utils.text import html_card

__all__ = ["KINDS", "Explanation", "Unreadable", "explain"]

KINDS = "code (.py), notebooks, Markdown, reST, text, shell (.sh, .sbatch), Dockerfile, requirements, environment.yml"
_SHELL_LIKE = re.compile(
    r".*\.(bash|sbatch|slurm|dockerfile)|dockerfile.*|requirements.*\.txt|environment.*\.ya?ml"
)


@dataclass(frozen=True, repr=False)
class Explanation:
    """What is outdated in a text, and the text as it has to read today.

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
        return (
            "\n".join(map(str, self.findings))
            or "No outdated use of PyTorch, torch_xla, Lightning or Darts found"
        )

    def __iter__(self) -> Iterator[Note]:
        return iter(self.findings)

    def __len__(self) -> int:
        return len(self.findings)

    def diff(self, name: str = "text") -> str:
        """Return the changes as a unified diff, that of a notebook cell by cell."""
        lines: list[str] = []
        for part, old, new in self.parts:
            label = f"{name} {part}".strip()
            lines += difflib.unified_diff(
                old.splitlines(), new.splitlines(), label, f"{label} (today)", lineterm=""
            )
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        title = "What is outdated" if self.findings else repr(self)
        rows = [
            (f"{each.cell} {each.line}".strip(), each.old, each.new or "nothing", each.why)
            for each in self
        ]
        return html_card(title, ("line", "old", "today", "why"), rows)


def explain(source: str | os.PathLike) -> Explanation:
    """Find what is outdated in code of 2017 to today: names, arguments, keywords, methods and
    commands.

    The code is parsed, never run. It may be a fragment, Markdown or reST with code in it, a
    notebook, what was pasted with prompts around it, or the message of an error; what is not Python
    is left out. What has gone is asked of the installed packages.

    Args:
        source: the text itself, or the name of a file as a `Path` or as a text of one line.

    Raises:
        Unreadable: no such file, one of another kind, no text, a broken notebook, or too long.
    """
    text, suffix = _text_of(source)
    try:
        parts, join = read(text, suffix)
        scope = Scope(parts)
        found = [find_in(part, scope) for part in parts]
    except RecursionError:
        raise Unreadable("The code is nested too deeply to be read.") from None
    notes = dict.fromkeys(note for each in found for note, _, _ in each)
    changes = [
        (part.name, part.text, _changed(part.text, each))
        for part, each in zip(parts, found, strict=True)
    ]
    is_changed = any(new != old for _, old, new in changes)
    return Explanation(
        tuple(notes), tuple(changes), join([new for _, _, new in changes]) if is_changed else text
    )


def _text_of(source: str | os.PathLike) -> tuple[str, str]:
    """Return a text, or that of a file with the suffix of its name."""
    if not isinstance(source, str | os.PathLike):
        raise Unreadable(f"{type(source).__name__}: give me a text, or the path of a file.")
    if isinstance(source, str) and not os.path.isfile(source):
        if re.fullmatch(r"[\w./\\:~ -]+\.(py|ipynb|md|rst|sh)", source):
            raise Unreadable(f"There is no file {source!r} here.")
        return source, ""
    path = Path(source)
    suffix = ".sh" if _SHELL_LIKE.fullmatch(path.name.lower()) else path.suffix.lower()
    if suffix not in ("", ".py", ".ipynb", ".md", ".markdown", ".rst", ".txt", ".sh"):
        raise Unreadable(f"{path} is a {suffix} file. What can be read: {KINDS}.")
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            return file.read(), suffix
    except (OSError, ValueError) as error:
        raise Unreadable(f"{path} cannot be read: {error}") from None


def _changed(text: str, found: list[Finding]) -> str:
    """Return a text with the edits of its findings, without those with which it would be no Python
    any more.
    """
    new = _edited(text, {edit for _, _, edits in found for edit in edits})
    if parses(new) or not parses(text):
        return new
    kept: set[Edit] = set()
    for _, _, edits in found:
        kept |= {*edits} if parses(_edited(text, {*kept, *edits})) else set()
    return _edited(text, kept)


def _edited(text: str, edits: set[Edit]) -> str:
    """Return a text with edits, none made into another one."""
    new, end = [], 0
    for start, stop, piece in sorted(edits):
        if start >= end:
            new += [text[end:start], piece]
            end = stop
    return "".join([*new, text[end:]])
