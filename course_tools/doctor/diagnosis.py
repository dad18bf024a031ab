"""The doctor's report: for a terminal, a notebook, a script and a public issue."""

from __future__ import annotations

from dataclasses import dataclass, field

from course_tools.doctor.finding import HOST_NAMES, Finding
from course_tools.private import without_secrets
from course_utils.tables import clean, html_card, text_table, wrapped
from course_utils.units import format_bytes

# Causes for which there is nothing to repair.
NOTHING_WRONG = ("no-hardware", "other-platform", "torch-xla-absent")


@dataclass(frozen=True, repr=False)
class Diagnosis:
    """The devices that were listed, and a finding for each kind of device."""

    host_kind: str
    torch: str
    devices: tuple[dict, ...]
    findings: tuple[Finding, ...]
    seconds: float
    torch_copies: tuple[str, ...] = ()  # where torch lies, the one that is imported first
    facts: dict[str, str] = field(default_factory=dict)  # of the machine, for a public issue

    def finding(self, kind: str) -> Finding:
        """Return the finding of one kind of device, such as "cuda"."""
        return next(finding for finding in self.findings if finding.kind == kind)

    @property
    def verdict(self) -> str:
        """What was found, in a sentence or two."""
        kinds = [one.kind for one in self.findings]
        cpu = self.finding("cpu") if "cpu" in kinds else None
        if cpu and not cpu.usable:
            return f"PyTorch does not work here. {_sentence(cpu.why)}"
        others = [one for one in self.findings if one.kind != "cpu" and one.cause != "rehearsal"]
        working = [self._names(one) for one in others if one.usable]
        if working:
            return f"PyTorch can use {', '.join(working)} here."
        rehearsal = any(one.cause == "rehearsal" for one in self.findings)
        both = "PyTorch and XLA run on the CPU."  # nothing above says that XLA does not work
        on_cpu = (both if rehearsal else "PyTorch runs on the CPU.") if cpu else ""
        missing = "No GPU or TPU works here" if "xla" in kinds else "No GPU works here"
        if not others:
            return on_cpu or "No TPU was found here: XLA runs on the CPU, as a rehearsal."
        troubles = [one for one in others if one.cause not in NOTHING_WRONG]
        if not troubles and {"cuda", "xpu"} <= {*kinds}:
            reason = f"{missing}: no NVIDIA, AMD or Intel card was found."
        else:
            reason = f"{missing}. {_sentence((troubles or others)[0].why)}"
        return f"{reason} {on_cpu}".rstrip()

    def _names(self, finding: Finding) -> str:
        listed = {one["device"]: f"{one['device']} ({one['name']})" for one in self.devices}
        return ", ".join(listed.get(each, each) for each in finding.devices)

    @property
    def title(self) -> str:
        """The host and its version of torch, in a sentence."""
        return f"This is {HOST_NAMES[self.host_kind]}, with {self.torch}"

    def to_markdown(self) -> str:
        """Return the report for a public issue, folded and without secrets.

        No pattern knows every secret, so read it before you paste it.
        """
        causes = ", ".join(f"{kinds}: {one.cause}" for kinds, one in self._by_cause())
        lines = [f"{name}: {' '.join(value.split())}" for name, value in self.facts.items()]
        body = f"{self!r}\n\n" + "\n".join(lines)
        return (
            f"<details><summary>Doctor's report ({causes})</summary>\n\n"
            f"~~~text\n{without_secrets(body)}\n~~~\n\n</details>"
        )

    def __repr__(self) -> str:
        about = f"{self.title}. Examined in {self.seconds:.1f} s."
        if len(self.torch_copies) > 1:
            first, *others = self.torch_copies
            about += f" Python imports torch from {first}, and not from {', '.join(others)}."
        parts = [wrapped(clean(self.verdict, 600)), wrapped(clean(about, 900))]
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
        title = f"{self.verdict} {self.title}."
        return html_card(title, ("kind", "works", "why", "fix"), rows)

    def _by_cause(self) -> list[tuple[str, Finding]]:
        """Return each distinct finding once, with the kinds of device that share it."""
        shared: dict[tuple, list[Finding]] = {}
        for one in self.findings:
            shared.setdefault((one.usable, one.cause, one.why, one.fix), []).append(one)
        return [(", ".join(one.kind for one in group), group[0]) for group in shared.values()]


def _sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else f"{text}."
