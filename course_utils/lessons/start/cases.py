"""Three real cases of other machines, as their owners reported them in public, for the doctor to judge."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from course_utils.display.cards import html_card
from course_utils.doctor.causes import find_cause
from course_utils.doctor.children import Outcome
from course_utils.doctor.evidence import Evidence, Finding, Package

FILE = Path(__file__).parent / "reported_cases.json"


@dataclass(frozen=True, repr=False)
class Case:
    """What the owner of another machine reported: what they saw, when and where they said so."""

    title: str
    date: str
    source: str
    symptom: str
    family: str
    evidence: Evidence

    def finding(self) -> Finding:
        """Return what the doctor makes of it, with the same rules as on this machine."""
        return find_cause(self.family, self.evidence)

    def _rows(self) -> list[tuple[str, ...]]:
        torch = self.evidence.torch
        built_for = f"{torch.version}, built for {f'CUDA {torch.cuda}' if torch.cuda else 'CPUs'}"
        return [("Seen", self.symptom), ("torch", built_for), ("Reported", f"{self.date}, {self.source}")]

    def __repr__(self) -> str:
        return "\n".join([f"{self.title} (another machine)", *(f"  {what}: {told}" for what, told in self._rows())])

    def _repr_html_(self) -> str:
        return html_card(self.title, ("", "another machine"), self._rows())


def other_machines() -> list[Case]:
    """Return the cases: a card that is too old, a driver that is too old, and a torch_xla that does not fit."""
    return [_case(**told) for told in json.loads(FILE.read_text())]


def _case(place: str, torch: dict, torch_xla: dict, probe: dict, **told: Any) -> Case:
    probes = {told["family"]: Outcome(**probe)}
    return Case(**told, evidence=Evidence(place, Package(**torch), probes, torch_xla=Package(**torch_xla)))
