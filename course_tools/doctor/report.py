"""The doctor's report: for a terminal, a notebook, a script and a public issue."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from course_tools.doctor.evidence import HOST_NAMES, Finding
from course_utils.text import format_bytes, html_card, text_table


@dataclass(frozen=True, repr=False)
class Diagnosis:
    """The devices that were listed, and a finding for each kind of device."""

    host_kind: str
    torch: str
    devices: tuple[dict, ...]
    findings: tuple[Finding, ...]
    seconds: float
    facts: dict[str, str] = field(default_factory=dict)  # of the machine, for a public issue

    def finding(self, kind: str) -> Finding:
        """Return the finding of one kind of device, such as "cuda"."""
        return next(finding for finding in self.findings if finding.kind == kind)

    @property
    def title(self) -> str:
        """The host and its version of torch, in a sentence."""
        return f"This is {HOST_NAMES[self.host_kind]}, with {self.torch}"

    def to_markdown(self) -> str:
        """Return the report for a public issue, folded, with the home folder written as "~".

        Nothing else is removed, so read it before you paste it.
        """
        causes = ", ".join(f"{kinds}: {one.cause}" for kinds, one in self._by_cause())
        lines = [f"{name}: {' '.join(value.split())}" for name, value in self.facts.items()]
        body = f"{self!r}\n\n" + "\n".join(lines)
        body = body.replace(str(Path.home()), "~")
        return (
            f"<details><summary>Doctor's report ({causes})</summary>\n\n"
            f"~~~text\n{body}\n~~~\n\n</details>"
        )

    def __repr__(self) -> str:
        parts = [f"{self.title}. Examined in {self.seconds:.1f} s."]
        if self.devices:
            rows = [
                (d["device"], d["name"], format_bytes(d["memory_bytes"]), d["detail"])
                for d in self.devices
            ]
            parts.append(text_table(("device", "name", "memory", "detail"), rows))
        by_cause = self._by_cause()
        if len(by_cause) > 1:
            summary = [(one.kind, one.works, one.cause) for one in self.findings]
            parts.append(text_table(("kind", "works", "cause"), summary))
        for kinds, one in by_cause:
            parts.append(f"{kinds}: {one.cause}\n{one.advice()}")
        return "\n\n".join(parts)

    def _repr_html_(self) -> str:
        rows = []
        for kinds, one in self._by_cause():
            rows.append((kinds, one.works, one.why, one.fix or "nothing to do"))
        return html_card(self.title, ("kind", "works", "why", "fix"), rows)

    def _by_cause(self) -> list[tuple[str, Finding]]:
        """Return each distinct finding once, with the kinds of device that share it."""
        shared: dict[tuple, list[Finding]] = {}
        for one in self.findings:
            shared.setdefault((one.usable, one.cause, one.why, one.fix), []).append(one)
        return [(", ".join(one.kind for one in group), group[0]) for group in shared.values()]
