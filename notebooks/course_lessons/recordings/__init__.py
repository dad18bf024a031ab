"""What torch.profiler wrote on GPUs of others, cut to the steps that the lessons show.

`sources.json` says where each is from; `tools/cut_recordings.py` in the repository cuts them.
"""

import gzip
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Recording:
    """Steps of a training run that others recorded on a real GPU."""

    name: str
    #: as torch.profiler writes it, and Perfetto reads it; of the memory, what was there before and
    #: its changes (time in ns, action, bytes, category)
    trace: dict[str, Any]
    steps: tuple[int, ...]  #: the numbers of the steps that are shown
    card: str
    recorded: str  #: month and year
    ran: str  #: what was run, as far as that is known
    note: str
    source: str  #: the repository
    commit: str
    path: str  #: of the whole trace in the repository
    licence: str

    @property
    def caption(self) -> str:
        """The sentence that stands under a picture of it."""
        where = f"{self.source}, {self.path} at {self.commit[:8]} ({self.licence})"
        said = f"Recorded by others on {self.card}, {self.recorded}: {self.ran}. {self.note}"
        return f"{said.strip()} Source: {where}."

    def __repr__(self) -> str:
        return self.caption


def names() -> list[str]:
    """Return the names of the recordings."""
    return list(_sources())


def load(name: str) -> Recording:
    """Return a recording by its name.

    Raises:
        ValueError: there is none of that name.
    """
    sources = _sources()
    if name not in sources:
        raise ValueError(f"there is no recording {name!r}; there are {', '.join(sources)}.")
    trace = json.loads(gzip.decompress(Path(FOLDER, f"{name}.json.gz").read_bytes()))
    told = sources[name]
    return Recording(name=name, trace=trace, **{**told, "steps": tuple(told["steps"])})


def _sources() -> dict[str, dict[str, Any]]:
    return json.loads(Path(FOLDER, "sources.json").read_text(encoding="utf-8"))
