"""Why an accelerator is missing or unusable, and the fix: `python -m course_utils.doctor`.

It reads files and variables first, then tries a kernel on every device in child processes with a time limit, so
that nothing here can hang or die with a driver. It starts without torch, since torch may be what is broken.
"""

import argparse
import importlib.metadata
import importlib.util
import json
import os
import platform
import re
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

from course_utils.display.cards import html_card, in_gb, text_table
from course_utils.doctor.causes import find_cause
from course_utils.doctor.children import Outcome, run_limited, run_probe
from course_utils.doctor.evidence import Evidence, Finding, Package
from course_utils.doctor.probes import PROBES
from course_utils.doctor.remedies import PLACES
from course_utils.hardware.machine import ROOT, pci_devices, place, read_text, tpu_chips

FAMILIES = ("cpu", "cuda", "mps", "xpu", "xla", "tpu")
LIMIT_S = 10.0  # for one step of a child process
SMI = ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]


@dataclass(frozen=True, repr=False)
class Diagnosis:
    """The doctor's report: where it ran, the devices that were listed, and one finding for each family."""

    place: str
    torch: str
    devices: tuple[dict, ...]
    findings: tuple[Finding, ...]
    seconds: float

    def finding(self, family: str) -> Finding:
        """Return the finding of one family, such as "cuda"."""
        return next(finding for finding in self.findings if finding.family == family)

    def to_dict(self) -> dict:
        """Return everything as plain values, as `--json` prints it."""
        return asdict(self)

    def to_frame(self):
        """Return the findings as a pandas table, one row for each family."""
        import pandas

        return pandas.DataFrame([asdict(finding) for finding in self.findings])

    def __repr__(self) -> str:
        rows = [(finding.family, finding.works, finding.cause) for finding in self.findings]
        parts = [f"This is {PLACES[self.place]}, with {self.torch}. Examined in {self.seconds:.1f} s."]
        if self.devices:
            parts.append(text_table(("device", "name", "memory", "detail"), _device_rows(self.devices)))
        parts.append(text_table(("family", "works", "cause"), rows))
        parts += [str(finding) for finding in self.findings]
        return "\n\n".join(parts)

    def _repr_html_(self) -> str:
        rows = [(f.family, f.works, f.why, f.fix or "nothing to do") for f in self.findings]
        title = f"This is {PLACES[self.place]}, with {self.torch}"
        return html_card(title, ("family", "works", "why", "fix"), rows)


def diagnose(families: tuple[str, ...] = FAMILIES, *, limit_s: float = LIMIT_S, root: Path = ROOT) -> Diagnosis:
    """Say for each accelerator family whether it works here, why not, and what to do.

    Args:
        families: the families to examine, of "cpu", "cuda", "mps", "xpu", "xla" and "tpu".
        limit_s: seconds that one step of a child process may take; an import may take three times as long.
        root: where to look for /sys, /proc and /dev: another folder holds a copy of another machine's files.

    Raises:
        ValueError: a family is not one of the six.
    """
    unknown = [family for family in families if family not in FAMILIES]
    if unknown:
        raise ValueError(f"family {unknown[0]!r} was asked for, but the families are {', '.join(FAMILIES)}.")
    start = time.perf_counter()
    evidence = _examine(families, limit_s, root)
    findings = tuple(find_cause(family, evidence) for family in families)
    torch = f"torch {evidence.torch.version}" if evidence.torch else "no torch"
    devices = tuple(evidence.probes["cpu"].told.get("devices", ()))
    return Diagnosis(evidence.place, torch, devices, findings, time.perf_counter() - start)


def main(arguments: list[str] | None = None) -> int:
    """Print the report; return 0 when at least one family that was asked for works, 1 otherwise."""
    parser = argparse.ArgumentParser(prog="python -m course_utils.doctor", description=__doc__.partition("\n")[0])
    parser.add_argument("--require", action="append", choices=FAMILIES, help="examine this family; may be repeated")
    parser.add_argument("--json", action="store_true", help="print JSON, for scripts")
    parser.add_argument(
        "--limit", type=float, default=LIMIT_S, help="seconds for one step (default 10; three times that for imports)"
    )
    parser.add_argument("--root", type=Path, default=ROOT, help="a folder with another machine's sys, proc and dev")
    parser.add_argument("--probe", choices=sorted(PROBES), help=argparse.SUPPRESS)
    asked = parser.parse_args(arguments)
    if asked.probe:
        PROBES[asked.probe]()
        return 0
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="backslashreplace")  # a name that this terminal's encoding lacks
    report = diagnose(tuple(asked.require or FAMILIES), limit_s=asked.limit, root=asked.root)
    print(json.dumps(report.to_dict(), indent=2) if asked.json else report)
    return 0 if any(finding.usable for finding in report.findings) else 1


def _examine(families: tuple[str, ...], limit_s: float, root: Path) -> Evidence:
    torch, torch_xla, torch_tpu = (_package(name) for name in ("torch", "torch_xla", "torch_tpu"))
    installed = {"xla": torch_xla, "tpu": torch_tpu}
    worth_trying = tuple(name for name in families if torch and installed.get(name, True))
    smi, probes = _try(worth_trying, bool(torch and torch.hip), limit_s)
    return Evidence(
        place=place(root),
        system=f"{platform.system()} {platform.machine()}",
        python=sys.executable,
        variables=dict(os.environ),
        pci=pci_devices(root),
        tpu_chips=len(tpu_chips(root)),
        torch=torch,
        torch_xla=torch_xla,
        torch_tpu=torch_tpu,
        limit_s=limit_s,
        smi=smi,
        probes={**{name: Outcome("badly") for name in PROBES}, **probes},
    )


def _try(families: tuple[str, ...], rocm: bool, limit_s: float) -> tuple[Outcome, dict[str, Outcome]]:
    """Run the children side by side, some of them only when the first answers say that it is not in vain."""
    first = {"nvidia", *families} - {"cuda", "mps", "xpu"}
    first |= {"cpu"} if {"mps", "xpu"} & set(families) else set()  # it knows what torch was built for
    with ThreadPoolExecutor() as pool:
        smi = pool.submit(run_limited, SMI, limit_s)
        running = {name: pool.submit(run_probe, name, limit_s) for name in sorted(first)}
        told = running["nvidia"].result().told
        later = {"cuda"} if rocm or told.get("libcuda", True) else set()
        if "cpu" in running and {"mps", "xpu"} & set(families):
            later |= {name for name in ("mps", "xpu") if running["cpu"].result().told.get(f"{name}_built")}
        running |= {name: pool.submit(run_probe, name, limit_s) for name in sorted(later & set(families))}
        return smi.result(), {name: run.result() for name, run in running.items()}


def _package(name: str) -> Package | None:
    """Read a distribution's version, and what torch was built for, from its files: importing may be what fails."""
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        return None
    text = read_text(Path(spec.origin).parent / "version.py")
    told = dict(re.findall(r"^(__version__|cuda|hip)\b[^=]*=\s*['\"]([^'\"]+)['\"]", text, re.MULTILINE))
    try:
        version = told.get("__version__") or importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        version = "0.0 (unknown)"
    return Package(version, told.get("cuda"), told.get("hip"))


def _device_rows(devices: tuple[dict, ...]) -> list[tuple[str, ...]]:
    return [
        ("cpu" if d["kind"] == "cpu" else f"{d['kind']}:{d['index']}", d["name"], in_gb(d["memory_bytes"]), d["detail"])
        for d in devices
    ]
