"""What a rehearsal has seen so far: counted by line of the program, and only ever more."""

from collections import Counter
from dataclasses import dataclass, field

from course_tools.rehearsal.lines import Spot


@dataclass
class Seen:
    """Counts of what a program did; the report puts them into words."""

    operations: int = 0  #: how many ran,
    on_gpu: int = 0  #: and how many of them on a GPU
    steps: int = 0  #: calls of an optimizer's step
    events: Counter[tuple[str, Spot]] = field(default_factory=Counter)  #: what, and on which line
    event_bytes: Counter[tuple[str, Spot]] = field(default_factory=Counter)  #: of all of them
    remarks: dict[str, None] = field(default_factory=dict)  #: in their order, each once

    def add(self, what: str, spot: Spot, size_bytes: int = 0) -> None:
        """Count an event of a line of the program, and its bytes."""
        self.events[what, spot] += 1
        self.event_bytes[what, spot] += size_bytes

    def remark(self, sentence: str) -> None:
        """Keep a sentence for the report, once."""
        self.remarks[sentence] = None
