"""What the tool says of one outdated place."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Note:
    """The replacement of one old argument, name or call, and the reason.

    Attributes:
        old: as it was written, such as "gpus=2".
        new: what to write today, or "" when nothing is needed any more.
        why: what the old one meant, or why it is gone.
        line: its line in the file or cell, counted from 1; 0 outside a text.
        cell: the number of its cell in a notebook; 0 elsewhere.
    """

    old: str
    new: str
    why: str
    line: int = 0
    cell: int = 0

    @property
    def place(self) -> str:
        """The place in the text, such as "cell 3, line 1"."""
        parts = (("cell", self.cell), ("line", self.line))
        return ", ".join(f"{name} {number}" for name, number in parts if number)

    def __str__(self) -> str:
        place = f"{self.place}: " if self.place else ""
        return f"{place}{self.old} -> {self.new or 'nothing'}. {self.why}"
