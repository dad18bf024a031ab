"""The doctor's report, for a terminal, a notebook and a script."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field

from course_utils.display.cards import html_card, text_table
from course_utils.display.units import format_bytes
from course_utils.doctor.evidence import PLACES, Finding
from course_utils.doctor.public import hide, private_names


@dataclass(frozen=True, repr=False)
class Diagnosis:
    """The doctor's report: where it ran, the devices that were listed, and one finding for each family."""

    place: str
    torch: str
    devices: tuple[dict, ...]
    findings: tuple[Finding, ...]
    seconds: float
    facts: dict[str, str] = field(default_factory=dict)  # of the machine, for a report to others

    def finding(self, family: str) -> Finding:
        """Return the finding of one family, such as "cuda"."""
        return next(finding for finding in self.findings if finding.family == family)

    def to_dict(self) -> dict:
        """Return everything as plain values, as `--json` prints it."""
        return asdict(self)

    def to_markdown(self) -> str:
        """Return it for a public issue: folded, and without names, home folders, addresses and tokens."""
        summary = ", ".join(f"{one.family}: {one.cause}" for one in self.findings)
        facts = "\n".join(f"{name}: {' '.join(value.split())}" for name, value in self.facts.items())
        body = hide(f"{self!r}\n\n{facts}", private_names())
        return f"<details><summary>Doctor's report ({summary})</summary>\n\n~~~text\n{body}\n~~~\n\n</details>"

    @property
    def title(self) -> str:
        """Where this is, and with which torch."""
        return f"This is {PLACES[self.place]}, with {self.torch}"

    def __repr__(self) -> str:
        rows: list[tuple[str, ...]] = [(one.family, one.works, one.cause) for one in self.findings]
        parts = [f"{self.title}. Examined in {self.seconds:.1f} s."]
        if self.devices:
            parts.append(text_table(("device", "name", "memory", "detail"), list(map(_device_row, self.devices))))
        parts.append(text_table(("family", "works", "cause"), rows))
        parts += [str(finding) for finding in self.findings]
        return "\n\n".join(parts)

    def _repr_html_(self) -> str:
        rows: list[tuple[str, ...]]
        rows = [(one.family, one.works, one.why, one.fix or "nothing to do") for one in self.findings]
        return html_card(self.title, ("family", "works", "why", "fix"), rows)


def _device_row(device: dict) -> tuple[str, ...]:
    name = device["kind"] if device["kind"] == "cpu" else f"{device['kind']}:{device['index']}"
    return name, device["name"], format_bytes(device["memory_bytes"]), device["detail"]
