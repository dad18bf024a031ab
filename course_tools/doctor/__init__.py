"""Find out why an accelerator is missing or unusable, and the fix: `python -m course_tools.doctor`.

It reads files and variables first, then tries a kernel on every device in child processes with a
time limit, so that nothing here can hang or die with a driver. It starts without torch, since torch
may be what is broken.
"""

from __future__ import annotations

import os
import platform
import re
import time
from concurrent.futures import ThreadPoolExecutor

from course_tools.doctor.causes import find_cause
from course_tools.doctor.evidence import Evidence
from course_tools.doctor.report import Diagnosis
from course_tools.doctor.run_child import Outcome, run_limited, run_probe
from course_utils.hardware import KINDS, machine

LIMIT_S = 40.0  # for one child process; importing torch from a cold disk takes most of it
# The variables that decide which devices a program is shown.
DECIDING = "(CUDA|HIP|ROCR|HSA|NVIDIA|TPU|PJRT|XRT|XLA|LD|COURSE)_|TORCH_DEVICE_BACKEND_AUTOLOAD"
SMI = ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]


def diagnose(kinds: tuple[str, ...] = KINDS, *, limit_s: float = LIMIT_S) -> Diagnosis:
    """Say for each kind of device whether it works here, why not, and what to do.

    Args:
        kinds: the kinds to examine, of `KINDS`.
        limit_s: seconds that one child process may take.

    Raises:
        ValueError: a kind is not one of `KINDS`.
    """
    unknown = [kind for kind in kinds if kind not in KINDS]
    if unknown:
        raise ValueError(
            f"kind {unknown[0]!r} was requested, but the kinds of device are {', '.join(KINDS)}."
        )
    start = time.perf_counter()
    evidence = _examine(kinds, limit_s)
    findings = tuple(find_cause(kind, evidence) for kind in kinds)
    return Diagnosis(
        host_kind=evidence.host_kind,
        torch=f"torch {evidence.torch.version}" if evidence.torch.version else "no torch",
        devices=tuple(evidence.probe("cpu").facts.get("devices", ())),
        findings=findings,
        seconds=time.perf_counter() - start,
        facts=_facts(evidence),
    )


def _examine(kinds: tuple[str, ...], limit_s: float) -> Evidence:
    torch = machine.read_package("torch")
    torch_xla = machine.read_package("torch_xla")
    torch_tpu = machine.read_package("torch_tpu")
    possible = {
        "mps": platform.system() == "Darwin",
        "xpu": torch.xpu,
        "xla": bool(torch_xla.version),
        "tpu": bool(torch_tpu.version),
    }
    tried = [kind for kind in kinds if torch.version and possible.get(kind, True)]
    return Evidence(
        host_kind=machine.host_kind(),
        torch=torch,
        torch_xla=torch_xla,
        torch_tpu=torch_tpu,
        variables=dict(os.environ),
        graphics=machine.graphics_cards(),
        tpu_chips=len(machine.tpu_chips()),
        container=machine.in_container(),
        wsl=machine.in_wsl(),
        probes=_run_probes(tried, limit_s),
    )


def _run_probes(kinds: list[str], limit_s: float) -> dict[str, Outcome]:
    """Run all child processes side by side."""
    with ThreadPoolExecutor(len(KINDS) + 2) as pool:
        running = {name: pool.submit(run_probe, name, limit_s) for name in ("nvidia", *kinds)}
        running["nvidia-smi"] = pool.submit(run_limited, SMI, limit_s)
        return {name: run.result() for name, run in running.items()}


def _facts(evidence: Evidence) -> dict[str, str]:
    """Return the facts that people will ask for in an issue."""
    facts = {"system": f"{platform.platform()}, Python {platform.python_version()}"}
    around = {"a container": evidence.container, "WSL": evidence.wsl, evidence.host_kind: True}
    facts["inside"] = ", ".join(name for name, true in around.items() if true)
    for name in ("torch", "torch_xla", "torch_tpu"):
        package = getattr(evidence, name)
        if package.version:
            facts[name] = f"{package.version}, for CUDA {package.cuda}, ROCm {package.hip}"
    driver = evidence.probe("nvidia").facts
    if "cuda" in driver:
        facts["NVIDIA driver"] = "{version}, CUDA {cuda[0]}.{cuda[1]}".format(**driver)
    else:
        facts["NVIDIA driver"] = "none answers"
    facts["cards"] = ", ".join(card.name for card in evidence.cards)
    facts["PCI"] = ", ".join(map(" ".join, evidence.graphics))
    facts["nvidia-smi"] = evidence.probe("nvidia-smi").output
    for name, value in evidence.variables.items():
        if re.match(DECIDING, name):
            facts[name] = value
    return {name: value for name, value in facts.items() if value}
