"""Three real cases of other machines, as their owners reported them in public, for the doctor to judge."""

import json
from dataclasses import dataclass
from pathlib import Path

from course_utils.display.cards import html_card
from course_utils.doctor.causes import find_cause
from course_utils.doctor.children import Outcome
from course_utils.doctor.evidence import Evidence, Finding, Package
from course_utils.doctor.probes import PROBES

FILE = Path(__file__).parent / "reported_cases.json"


@dataclass(frozen=True, repr=False)
class Case:
    """What the owner of another machine reported: what they saw, when and where they said so."""

    title: str
    date: str
    source: str
    symptom: str
    torch: str
    family: str
    evidence: Evidence

    def finding(self) -> Finding:
        """Return what the doctor makes of it, with the same rules as on this machine."""
        return find_cause(self.family, self.evidence)

    def _rows(self) -> list[tuple[str, str]]:
        return [("Seen", self.symptom), ("torch", self.torch), ("Reported", f"{self.date}, {self.source}")]

    def __repr__(self) -> str:
        return "\n".join([f"{self.title} (another machine)", *(f"  {what}: {told}" for what, told in self._rows())])

    def _repr_html_(self) -> str:
        return html_card(self.title, ("", "another machine"), self._rows())


def other_machines() -> list[Case]:
    """Return the cases: a card that is too old, a driver that is too old, and a torch_xla that does not fit."""
    return [_case(told) for told in json.loads(FILE.read_text())]


def _case(told: dict) -> Case:
    probe = told["probe"]
    outcome = Outcome(probe["ended"], probe["told"], tuple(probe["kernels"]))
    evidence = Evidence(
        place=told["place"],
        system="not told",
        python="not told",
        variables={},
        pci=[],
        tpu_chips=0,
        torch=Package(**told["torch"]),
        torch_xla=Package(**told["torch_xla"]) if told["torch_xla"] else None,
        torch_tpu=None,
        limit_s=0,
        probes={**{name: Outcome("badly") for name in PROBES}, told["family"]: outcome},
    )
    built_for = f"CUDA {told['torch']['cuda']}" if told["torch"]["cuda"] else "CPUs"
    torch = f"{told['torch']['version']}, built for {built_for}"
    return Case(told["title"], told["date"], told["source"], told["symptom"], torch, told["family"], evidence)
