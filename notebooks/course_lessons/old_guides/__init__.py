"""What lesson 9 needs beside the reader of old code: its reference, which can be searched, and a
new process.
"""

import json
import subprocess
import sys
from pathlib import Path

from course_lessons.exercises.progress import progress
from course_lessons.needs import no_copies, what_cells_need
from course_lessons.worth_it import draw_bars
from course_utils.old_code.names import ATTRIBUTES, KEYWORDS, METHODS, NAMES, TABLES
from course_utils.text import html_card, text_table

NO_RANKS = no_copies()  # lesson 3 hides a GPU instead
# in the progress bars of Darts' guide
PRINTED_STEPS_PER_S = {"CPU": 42.49, "GPU": 39.81, "TPU": 8.52}


class Reference:
    """The rows of the reference that hold a word such as "tpu", as a table; "" stands for all of
    them.
    """

    HEADER = ("where", "old", "today", "why or proof")

    def __init__(self, word: str):
        self.word, self.rows = (
            word,
            [row for row in _rows() if word.lower() in " ".join(row).lower()],
        )

    def __repr__(self) -> str:
        return text_table(self.HEADER, self.rows)

    def _repr_html_(self) -> str:
        return html_card(f"{len(self.rows)} rows with {self.word!r}", self.HEADER, self.rows)


def number_from(code: str) -> float:
    """Run code in a new Python, with this one's environment variables, and return the number that
    it prints last.
    """
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return float(run.stdout.split()[-1])


def _rows() -> list[tuple[str, ...]]:
    claims = map(
        tuple, json.loads((Path(__file__).parent / "claims.json").read_text(encoding="utf-8"))
    )
    gone = {
        name: ("nothing that means the same", why)
        for name, (_, why) in TABLES["gone_arguments"].items()
    }
    kinds: dict = {
        "name": NAMES,
        "method": METHODS,
        "keyword": KEYWORDS,
        "a Trainer's": ATTRIBUTES,
        "argument": gone,
    }
    return [*claims] + [
        (kind, old, *advice) for kind, table in kinds.items() for old, advice in table.items()
    ]
