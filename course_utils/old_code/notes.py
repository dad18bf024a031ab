"""The records that the parts of this tool hand to each other: a note, an edit, a finding."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Note:
    """What became of one old argument, name or call.

    Attributes:
        old: as it was written, such as "gpus=2".
        new: what to write today, or "" when nothing is needed any more.
        why: what the old one meant, or why it is gone.
        line: its line in the file or cell, counted from 1; 0 outside a text.
        cell: its cell in a notebook, such as "cell 3"; "" elsewhere.
    """

    old: str
    new: str
    why: str
    line: int = 0
    cell: str = ""

    def __str__(self) -> str:
        places = [self.cell] if self.cell else []
        if self.line:
            places.append(f"line {self.line}")
        where = ", ".join(places) + ": " if places else ""
        return f"{where}{self.old} -> {self.new or 'nothing'}. {self.why}"


@dataclass(frozen=True)
class Edit:
    """A change of a text: what stands between two places of it is replaced."""

    start: int
    end: int
    text: str


@dataclass(frozen=True)
class Finding:
    """A note, its place in the text, and the edits that are safe to make; () leaves it to you."""

    note: Note
    place: int
    edits: tuple[Edit, ...] = ()


@dataclass(frozen=True)
class Expression:
    """A value that is known only when the program runs, as its source."""

    text: str

    def __repr__(self) -> str:
        return self.text
